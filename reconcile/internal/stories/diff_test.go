package stories_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/report"
)

// diffOn makes a pass with a dry-run client, and holds it to reads and dry runs.
func diffOn(t *testing.T, env *testenv.Env, o reconcile.Options) model.Fleet {
	t.Helper()
	c := clientOf(t, env, func(_ int, r *http.Request) {
		if r.Method != http.MethodGet && !isDryRun(r) {
			t.Errorf("a diff writes: %s %s", r.Method, r.URL)
		}
	})
	o.Concurrency, o.Estimate = 1, kube.CouldNotTry
	return runWith(t, client.NewDryRunClient(c), o)
}

// isDryRun looks into the query, and for a deletion into the options in the body.
func isDryRun(r *http.Request) bool {
	if r.Method != http.MethodDelete {
		return r.URL.Query().Get("dryRun") == "All"
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	options := &metav1.DeleteOptions{}
	if err == nil {
		_, _, err = clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, options)
	}
	return err == nil && slices.Equal(options.DryRun, []string{metav1.DryRunAll})
}

func diff(t *testing.T, env *testenv.Env, ns string) model.Fleet {
	t.Helper()
	return diffOn(t, env, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}})
}

func diffFile(t *testing.T, env *testenv.Env, ns, manifests string) model.Fleet {
	t.Helper()
	m, err := manifest.Read([]string{"-"}, strings.NewReader(manifests), ns)
	if err != nil {
		t.Fatal(err)
	}
	return diffOn(t, env, reconcile.Options{Manifests: m})
}

// told is what a fleet's report says will be, or was, done: every step that
// the server took with its changes, and every hold.
func told(f model.Fleet) []string {
	var lines []string
	for _, c := range f.Caches {
		for _, o := range c.Outcomes {
			if o.Result == model.Unchanged {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %s", o.Step.Target, o.Result))
			for _, change := range o.Step.Changes {
				lines = append(lines, fmt.Sprintf("  %s: %s -> %s", change.Path, change.From, change.To))
			}
		}
		for _, h := range c.Plan.Holds {
			lines = append(lines, h.Target.String()+" "+h.Reason)
		}
	}
	return lines
}

// For every scenario: what diff says is what reconcile then does, and after it
// diff says nothing. The cluster is frozen, so nothing else moves.
func TestDiffIsWhatReconcileDoes(t *testing.T) {
	env := frozen(t)
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		if s.Cache.DeletionTimestamp != nil {
			return // no server stores an object that is born deleted: TestDiffOfADeletion
		}
		ns := env.Namespace(t)
		store(t, env, ns, s)
		announced := told(diff(t, env, ns))
		did := passOn(t, env, ns)
		if d := cmpDiff(announced, told(did)); d != "" {
			t.Errorf("announced (-) and done (+):\n%s", d)
		}
		after := diff(t, env, ns)
		for _, c := range after.Caches {
			if len(c.Outcomes) > 0 {
				t.Errorf("after reconcile, diff still says: %v", told(after))
			}
		}
	})
}

// store puts a scenario's objects into the cluster; whoever owned its fields.
func store(t *testing.T, env *testenv.Env, ns string, s scenario.Scenario) {
	t.Helper()
	put := func(o client.Object) {
		o.SetNamespace(ns)
		o.SetResourceVersion("")
		o.SetUID("")
		o.SetManagedFields(nil)
		for _, ref := range o.GetOwnerReferences() {
			ref.UID = s.Cache.UID
			o.SetOwnerReferences(append(o.GetOwnerReferences()[:0], ref))
		}
		err := env.Client.Create(t.Context(), o)
		if _, shared := o.(*storagev1.StorageClass); shared && apierrors.IsAlreadyExists(err) {
			return // it belongs to no namespace, and another scenario has it too
		}
		if err != nil {
			t.Fatalf("%T: %v", o, err)
		}
	}
	put(s.Cache)
	if s.ConfigMap != nil {
		put(s.ConfigMap)
	}
	for _, o := range s.Live {
		if svc, ok := o.(*corev1.Service); ok && svc.Spec.ClusterIP != corev1.ClusterIPNone {
			svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
		}
		put(o.(client.Object))
	}
}

func TestDiffOfADeletion(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	if err := env.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if lines := told(diff(t, env, ns)); len(lines) != 1 || !strings.HasSuffix(lines[0], "finalized") {
		t.Errorf("%v", lines)
	}

	// With a hook it is the next step that is announced, and then done.
	hooked := &v1.ClusteredCache{ObjectMeta: meta(env.Namespace(t), "cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}
	withHooks(imageGood)(hooked)
	if err := env.Client.Create(t.Context(), hooked); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, hooked.Namespace)
	if err := env.Client.Delete(t.Context(), hooked); err != nil {
		t.Fatal(err)
	}
	announced := told(diff(t, env, hooked.Namespace))
	if d := cmpDiff(announced, told(passOn(t, env, hooked.Namespace))); d != "" || len(announced) != 3 {
		t.Errorf("announced %v, done:\n%s", announced, d)
	}
	if lines := told(diff(t, env, hooked.Namespace)); len(lines) != 1 || !strings.HasSuffix(lines[0], v1.ReasonRunningHook) {
		t.Errorf("while the hook runs: %v", lines)
	}
}

// Random specs and random drift on a frozen cluster: what diff announces is
// exactly what reconcile then reports.
func TestAnnouncedIsDone(t *testing.T) {
	env := frozen(t)
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 7))
		ns := env.Namespace(t)
		c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: randomSpec(random)}
		if err := env.Client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			announced := told(diff(t, env, ns))
			done := told(passOn(t, env, ns))
			if d := cmpDiff(announced, done); d != "" {
				t.Fatalf("seed %d, round %d: announced (-) and done (+):\n%s", seed, round, d)
			}
			drift(t, env, ns, random)
		}
	}
}

func randomSpec(r *rand.Rand) v1.ClusteredCacheSpec {
	s := v1.ClusteredCacheSpec{Size: int32(1 + r.IntN(4)), Version: fmt.Sprintf("1.6.%d", r.IntN(40))}
	if r.IntN(2) == 0 {
		s.Engine, s.Image = v1.EngineCustom, "example.com/cache"
		if r.IntN(2) == 0 {
			s.Storage = &v1.StorageSpec{Size: quantity(fmt.Sprintf("%dGi", 1+r.IntN(3)))}
		}
	}
	if r.IntN(2) == 0 {
		s.Args = []string{"-v", fmt.Sprint(r.IntN(9))}
	}
	if r.IntN(2) == 0 {
		s.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity(fmt.Sprintf("%dMi", 64+r.IntN(1000)))}
	}
	if r.IntN(3) == 0 {
		s.PodTemplate = raw(`{"spec":{"tolerations":[{"key":"a","operator":"Exists"}],"containers":[{"name":"side","image":"x","env":[{"name":"A","value":""},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}`)
	}
	if r.IntN(4) == 0 {
		s.Config = &v1.ConfigReference{Name: "nosuch"}
	}
	return s
}

// drift changes something of the cache or its children, as somebody else.
func drift(t *testing.T, env *testenv.Env, ns string, r *rand.Rand) {
	t.Helper()
	key := client.ObjectKey{Namespace: ns, Name: "cache"}
	changes := []struct {
		object client.Object
		merge  string
	}{
		{&v1.ClusteredCache{}, fmt.Sprintf(`{"spec":{"size":%d}}`, 1+r.IntN(5))},
		{&v1.ClusteredCache{}, fmt.Sprintf(`{"spec":{"version":"2.%d"}}`, r.IntN(9))},
		{&v1.ClusteredCache{}, `{"spec":{"args":null,"resources":null}}`},
		{&v1.ClusteredCache{}, `{"metadata":{"finalizers":null}}`},
		{&appsv1.StatefulSet{}, `{"spec":{"replicas":7}}`},
		{&appsv1.StatefulSet{}, `{"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}`},
		{&appsv1.StatefulSet{}, `{"metadata":{"labels":null}}`},
		{&corev1.Service{}, `{"spec":{"selector":{"app":"other"}}}`},
		{&corev1.Service{}, `{"metadata":{"managedFields":[{}]}}`},
		{&corev1.Service{}, `{"metadata":{"ownerReferences":null}}`},
		{&policyv1.PodDisruptionBudget{}, `{"spec":{"maxUnavailable":"50%"}}`},
	}
	for range 1 + r.IntN(3) {
		c := changes[r.IntN(len(changes))]
		if env.Client.Get(t.Context(), key, c.object) != nil {
			continue // it is not there: withheld, or not needed
		}
		if err := env.Client.Patch(t.Context(), c.object, client.RawPatch("application/merge-patch+json", []byte(c.merge)), client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
}

// Who may only read gets a plan all the same, marked as an estimate.
func TestDiffWithoutTheRightToWrite(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settle(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Size = 4 })
	readers(t)
	config := *env
	config.Config = asUser(env.Config, "reader")
	f := diff(t, &config, ns)
	o := f.Caches[0].Outcomes
	if len(o) != 1 || o[0].Result != model.Estimated || !strings.Contains(o[0].Estimate, "patch") || o[0].Step.Changes[0].To != "4" {
		t.Errorf("%+v", o)
	}
	if s := report.Summarize(f); s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	f = diffFile(t, &config, ns, `{apiVersion: cache.example.com/v1, kind: ClusteredCache, metadata: {name: cache}, spec: {version: "2", size: 3}}`)
	if e := f.Caches[0].Edit; e == nil || e.Estimate == "" || len(e.Changes) != 2 {
		t.Errorf("%+v", e)
	}
}

// A policy that rewrites images, and a field that the server drops because its
// feature is off: warnings, in diff and in reconcile, run after run; never a
// change.
func TestHeldByTheServerIsNoChange(t *testing.T) {
	ns := env.Namespace(t)
	for _, o := range rewritePolicy(t) {
		u := &unstructured.Unstructured{Object: o}
		mustCreate(t, u)
		t.Cleanup(func() { _ = env.Client.Delete(t.Context(), u) })
	}
	patch(t, &corev1.Namespace{ObjectMeta: meta("", ns)}, `{"metadata":{"labels":{"rewrite":"yes"}}}`)
	testenv.Eventually(t, "the policy rewrites", func() bool {
		probe := &appsv1.StatefulSet{ObjectMeta: meta(ns, "probe")}
		probe.Spec.Selector = labelSelector("probe")
		probe.Spec.Template.Labels = probe.Spec.Selector.MatchLabels
		probe.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "docker.io/x"}}
		if err := env.Client.Create(t.Context(), probe, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(probe.Spec.Template.Spec.Containers[0].Image, "mirror.example.com/")
	})
	create(t, ns, "cache")
	settle(t, ns)
	if image := get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "mirror.example.com/") {
		t.Fatalf("image %s", image)
	}
	for range 2 {
		before := versions(t, ns)
		for what, f := range map[string]model.Fleet{"diff": diff(t, env, ns), "reconcile": pass(t, ns)} {
			if len(f.Caches) != 1 || len(f.Caches[0].Outcomes) != 1 {
				t.Fatalf("%s: %+v", what, f.Caches)
			}
			if o := f.Caches[0].Outcomes[0]; o.Result != model.Unchanged || !strings.HasPrefix(o.Warning, "held-by-admission: spec.template.spec.containers[cache].image (") {
				t.Errorf("%s: %s, %q", what, o.Result, o.Warning)
			}
			if s := report.Summarize(f); s.Writes != 0 || f.Caches[0].Verdict.State != model.Settled {
				t.Errorf("%s: %+v, %+v", what, s, f.Caches[0].Verdict)
			}
		}
		if d := cmpDiff(before, versions(t, ns)); d != "" {
			t.Error(d)
		}
	}
}

func TestDroppedByTheServerIsNoChange(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.PodTemplate = raw(droppedField)
		c.Spec.Engine, c.Spec.Image = v1.EngineCustom, "example.com/cache"
		c.Spec.Storage = &v1.StorageSpec{Size: quantity("1Gi")}
	})
	settle(t, ns)
	for what, f := range map[string]model.Fleet{"diff": diff(t, env, ns), "reconcile": pass(t, ns)} {
		if len(f.Caches) != 1 || len(f.Caches[0].Outcomes) != 1 {
			t.Fatalf("%s: %+v: is the field no longer behind a gate that is off?", what, f.Caches)
		}
		if o := f.Caches[0].Outcomes[0]; o.Result != model.Unchanged || !strings.HasPrefix(o.Warning, "dropped-by-server: ") {
			t.Errorf("%s: %s, %q", what, o.Result, o.Warning)
		}
	}
}

// droppedField is behind a feature gate that is off by default in Kubernetes 1.37.
const droppedField = `{"spec":{"evictionResponders":[{"name":"a.example.com/b","priority":1}]}}`
