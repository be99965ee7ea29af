package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/report"
)

// told is what a fleet's report says will be, or was, done: every step that
// the server took with its changes, and every hold.
func told(f world.Fleet) []string {
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
	t.Parallel()
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		t.Parallel()
		if s.Cache.DeletionTimestamp != nil {
			return // no server stores an object that is born deleted: TestDiffOfADeletion
		}
		w := world.Frozen(t)
		store(w, s)
		announced := told(w.Diff())
		did := w.Pass()
		if d := cmp.Diff(announced, told(did)); d != "" {
			t.Errorf("announced (-) and done (+):\n%s", d)
		}
		after := w.Diff()
		for _, c := range after.Caches {
			if len(c.Outcomes) > 0 {
				t.Errorf("after reconcile, diff still says: %v", told(after))
			}
		}
	})
}

// store puts a scenario's objects into the cluster; whoever owned its fields.
func store(w *world.World, s scenario.Scenario) {
	w.Helper()
	put := func(o client.Object) {
		o.SetNamespace(w.NS)
		o.SetResourceVersion("")
		o.SetUID("")
		o.SetManagedFields(nil)
		for _, ref := range o.GetOwnerReferences() {
			ref.UID = s.Cache.UID
			o.SetOwnerReferences(append(o.GetOwnerReferences()[:0], ref))
		}
		err := w.Env.Client.Create(w.Context(), o)
		if _, shared := o.(*storagev1.StorageClass); shared && apierrors.IsAlreadyExists(err) {
			return // it belongs to no namespace, and another scenario has it too
		}
		if err != nil {
			w.Fatalf("%T: %v", o, err)
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
	t.Parallel()
	w := world.Frozen(t)
	w.Cache()
	w.Pass()
	w.Remove()
	if lines := told(w.Diff()); len(lines) != 1 || !strings.HasSuffix(lines[0], "finalized") {
		t.Errorf("%v", lines)
	}

	// With a hook it is the next step that is announced, and then done.
	w = world.Frozen(t)
	w.Cache(world.Hooks(world.HookGood))
	w.Pass()
	w.Remove()
	announced := told(w.Diff())
	if d := cmp.Diff(announced, told(w.Pass())); d != "" || len(announced) != 3 {
		t.Errorf("announced %v, done:\n%s", announced, d)
	}
	if lines := told(w.Diff()); len(lines) != 1 || !strings.HasSuffix(lines[0], v1.ReasonRunningHook) {
		t.Errorf("while the hook runs: %v", lines)
	}
}

// Random specs and random drift on a frozen cluster: what diff announces is
// exactly what reconcile then reports.
func TestAnnouncedIsDone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			w := world.Frozen(t)
			w.Create(&v1.ClusteredCache{ObjectMeta: w.Meta("cache"), Spec: randomSpec(random)})
			for round := range 3 {
				announced := told(w.Diff())
				done := told(w.Pass())
				if d := cmp.Diff(announced, done); d != "" {
					t.Fatalf("round %d: announced (-) and done (+):\n%s", round, d)
				}
				drift(w, random)
			}
		})
	}
}

func randomSpec(r *rand.Rand) v1.ClusteredCacheSpec {
	s := v1.ClusteredCacheSpec{Size: int32(1 + r.IntN(4)), Version: fmt.Sprintf("1.6.%d", r.IntN(40))}
	if r.IntN(2) == 0 {
		s.Engine, s.Image = v1.EngineCustom, "example.com/cache"
		if r.IntN(2) == 0 {
			s.Storage = &v1.StorageSpec{Size: resource.MustParse(fmt.Sprintf("%dGi", 1+r.IntN(3)))}
		}
	}
	if r.IntN(2) == 0 {
		s.Args = []string{"-v", fmt.Sprint(r.IntN(9))}
	}
	if r.IntN(2) == 0 {
		s.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", 64+r.IntN(1000)))}
	}
	if r.IntN(3) == 0 {
		s.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec":{"tolerations":[{"key":"a","operator":"Exists"}],"containers":[{"name":"side","image":"x","env":[{"name":"A","value":""},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}`)}
	}
	if r.IntN(4) == 0 {
		s.Config = &v1.ConfigReference{Name: "nosuch"}
	}
	return s
}

// drift changes something of the cache or its children, as somebody else.
func drift(w *world.World, r *rand.Rand) {
	w.Helper()
	key := client.ObjectKey{Namespace: w.NS, Name: "cache"}
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
		if w.Env.Client.Get(w.Context(), key, c.object) != nil {
			continue // it is not there: withheld, or not needed
		}
		w.Patch(c.object, c.merge, client.FieldOwner("somebody"))
	}
}

// Who may only read gets a plan all the same, marked as an estimate.
func TestDiffWithoutTheRightToWrite(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	w.Edit(`spec: {size: 4}`)
	reader := w.As(world.Reader())
	f := reader.Diff()
	o := f.Caches[0].Outcomes
	if len(o) != 1 || o[0].Result != model.Estimated || !strings.Contains(o[0].Estimate, "patch") || o[0].Step.Changes[0].To != "4" {
		t.Errorf("%+v", o)
	}
	if s := report.Summarize(f.Fleet); s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	f = reader.DiffOf(`{apiVersion: cache.example.com/v1, kind: ClusteredCache, metadata: {name: cache}, spec: {version: "2", size: 3}}`)
	if e := f.Caches[0].Edit; e == nil || e.Estimate == "" || len(e.Changes) != 2 {
		t.Errorf("%+v", e)
	}
}

// A policy that rewrites images, and a field that the server drops because its
// feature is off: warnings, in diff and in reconcile, run after run; never a
// change.
func TestHeldByTheServerIsNoChange(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.CreateYAML(rewritePolicy)
	w.Label("rewrite", "yes")
	w.Eventually("the policy rewrites", func() bool {
		probe := w.Probe("docker.io/x")
		w.Create(probe, client.DryRunAll)
		return strings.HasPrefix(probe.Spec.Template.Spec.Containers[0].Image, "mirror.example.com/")
	})
	w.Cache()
	w.Settle()
	if image := w.StatefulSet().Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "mirror.example.com/") {
		t.Fatalf("image %s", image)
	}
	for range 2 {
		w.WritesNothing("diff or reconcile", func() {
			for what, f := range map[string]world.Fleet{"diff": w.Diff(), "reconcile": w.Pass()} {
				if len(f.Caches) != 1 || len(f.Caches[0].Outcomes) != 1 {
					t.Fatalf("%s: %+v", what, f.Caches)
				}
				if o := f.Caches[0].Outcomes[0]; o.Result != model.Unchanged || !strings.HasPrefix(o.Warning, "held-by-admission: spec.template.spec.containers[cache].image (") {
					t.Errorf("%s: %s, %q", what, o.Result, o.Warning)
				}
				if s := report.Summarize(f.Fleet); s.Writes != 0 || f.Caches[0].Verdict.State != model.Settled {
					t.Errorf("%s: %+v, %+v", what, s, f.Caches[0].Verdict)
				}
			}
		})
	}
}

func TestDroppedByTheServerIsNoChange(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	// The field is behind a feature gate that is off by default in Kubernetes 1.37.
	w.Cache(world.Storage("1Gi", ""), `spec: {podTemplate: {spec: {evictionResponders: [{name: a.example.com/b, priority: 1}]}}}`)
	w.Settle()
	for what, f := range map[string]world.Fleet{"diff": w.Diff(), "reconcile": w.Pass()} {
		if len(f.Caches) != 1 || len(f.Caches[0].Outcomes) != 1 {
			t.Fatalf("%s: %+v: is the field no longer behind a gate that is off?", what, f.Caches)
		}
		if o := f.Caches[0].Outcomes[0]; o.Result != model.Unchanged || !strings.HasPrefix(o.Warning, "dropped-by-server: ") {
			t.Errorf("%s: %s, %q", what, o.Result, o.Warning)
		}
	}
}

// rewritePolicy makes admission pull images of labelled namespaces from a mirror.
const rewritePolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mirror}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {rewrite: "yes"}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [statefulsets]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image",
          value: object.spec.template.spec.containers[0].image.replace("docker.io/", "mirror.example.com/")}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mirror}
spec: {policyName: mirror}
`
