package stories_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// look looks as a user who may only read.
func look(t *testing.T, o reconcile.Options) model.Fleet {
	t.Helper()
	config := asUser(env.Config, "reader")
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Concurrency = 2
	f, err := reconcile.Look(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Looking says what is so now, not what a status says, of every cache, and needs
// rights to read alone.
func TestLook(t *testing.T) {
	readers(t)
	ns := env.Namespace(t)
	scope := observe.Scope{Namespaces: []string{ns}}
	c := create(t, ns, "cache")
	create(t, ns, "new")
	runWith(t, productClient(t, nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}, Names: []string{"cache"}}, Concurrency: 1, Wait: true, Timeout: time.Minute})

	f := look(t, reconcile.Options{Scope: scope})
	wantVerdict(t, f, "cache", model.Settled, v1.ReasonReady)
	wantVerdict(t, f, "new", model.Progressing, v1.ReasonPending)
	if s := reportOf(f, "cache").Standing; s.Ready != 3 || s.Size != 3 || s.Runs != "1.6.38" || s.Nodes != nil {
		t.Errorf("standing: %+v", s)
	}
	// Nobody passed since, and the status says Ready.
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "broken" })
	wantVerdict(t, look(t, reconcile.Options{Scope: scope}), "cache", model.Progressing, v1.ReasonPending)
	pass(t, ns)
	testenv.Eventually(t, "a node is broken", func() bool {
		f = look(t, reconcile.Options{Scope: scope, Nodes: true})
		return verdict(t, f, "cache").Reason == v1.ReasonImagePullBackOff
	})
	nodes := reportOf(f, "cache").Standing.Nodes
	if len(nodes) != 3 || nodes[0].State != v1.ReasonReady || nodes[0].Newest || nodes[0].Version != "1.6.38" ||
		nodes[2].State != v1.ReasonImagePullBackOff || !nodes[2].Newest || nodes[2].Version != "broken" || nodes[2].Message == "" {
		t.Errorf("nodes: %+v", nodes)
	}
}

// A pipeline that may not write waits until the stored spec is its file's, and
// everything has settled.
func TestLookForAFile(t *testing.T) {
	readers(t)
	ns := env.Namespace(t)
	file := `
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: cache}
spec: {version: "1.6.39", resources: {requests: {cpu: 1000m}}} # the size is an autoscaler's
`
	expect := func() *manifest.Set {
		m, err := manifest.Read([]string{"-"}, strings.NewReader(file), ns)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	wantVerdict(t, look(t, reconcile.Options{Manifests: expect()}), "cache", model.Progressing, v1.ReasonSpecNotApplied)
	// One that is not there is waited for: it has not been deleted meanwhile.
	absent := look(t, reconcile.Options{Manifests: expect(), Wait: true, Timeout: 2 * time.Second})
	wantVerdict(t, absent, "cache", model.Progressing, v1.ReasonSpecNotApplied)
	if !absent.TimedOut {
		t.Errorf("waited for a cache that is not there: %+v", absent)
	}
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.Size = 2
		c.Spec.Resources.Requests = corev1.ResourceList{"cpu": quantity("1")}
	})
	settle(t, ns)
	f := look(t, reconcile.Options{Manifests: expect()})
	wantVerdict(t, f, "cache", model.Progressing, v1.ReasonSpecNotApplied)
	if m := verdict(t, f, "cache").Message; m != `the stored spec is not that of standard input: spec.version is "1.6.38" and not "1.6.39"` {
		t.Errorf("message: %s", m)
	}
	f = look(t, reconcile.Options{Manifests: expect(), Wait: true, Timeout: 2 * time.Second})
	if !f.TimedOut {
		t.Errorf("waited: %+v", f)
	}
	time.AfterFunc(time.Second, func() {
		update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.39" })
		settle(t, ns)
	})
	f = look(t, reconcile.Options{Manifests: expect(), Wait: true, Timeout: time.Minute})
	wantVerdict(t, f, "cache", model.Settled, v1.ReasonReady)
	// What is being deleted is not what the file asks for, also when we have let go of it.
	update(t, c, func(c *v1.ClusteredCache) { c.Finalizers = append(c.Finalizers, "test.example.com/keep") })
	remove(t, ns, "cache")
	settle(t, ns)
	f = look(t, reconcile.Options{Manifests: expect()})
	wantVerdict(t, f, "cache", model.Progressing, v1.ReasonSpecNotApplied)
	update(t, c, func(c *v1.ClusteredCache) { c.Finalizers = nil })
}

// What others have made under the name of a child has not our label, and is
// found all the same, as a pass would find it.
func TestLookFindsWhatTheListsDoNotShow(t *testing.T) {
	readers(t)
	ns := env.Namespace(t)
	mustCreate(t, service(ns, "cache"))
	create(t, ns, "cache")
	wantVerdict(t, pass(t, ns), "cache", model.Stalled, v1.ReasonNameConflict)
	wantVerdict(t, look(t, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}}), "cache", model.Stalled, v1.ReasonNameConflict)
}

// Pods are read once a pass, and only while there is something to learn from
// them.
func TestPodsAreReadForUnsettledCachesOnly(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settle(t, ns)
	lists := func() int {
		n := 0
		client := productClient(t, func(_ int, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				n++
			}
		})
		runWith(t, client, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})
		return n
	}
	if n := lists(); n != 0 {
		t.Errorf("%d lists of pods for a settled cache", n)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "broken" })
	until(t, ns, "cache", v1.ReasonImagePullBackOff)
	if n := lists(); n != 1 {
		t.Errorf("%d lists of pods for a cache that has not settled", n)
	}
}

// A node that is being deleted counts no more, though it is ready still.
func TestTerminatingNodesDoNotCount(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache")
	settle(t, ns)
	pod := get(t, ns, "cache-1", &corev1.Pod{})
	patch(t, pod, `{"metadata":{"finalizers":["test.example.com/keep"]}}`)
	if err := env.Client.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the controller has seen it", func() bool {
		return get(t, ns, "cache", &appsv1.StatefulSet{}).Status.UpdatedReplicas == 2
	})
	pass(t, ns)
	c := get(t, ns, "cache", &v1.ClusteredCache{})
	if c.Status.ReadyReplicas != 2 || available(c) != metav1.ConditionFalse {
		t.Errorf("status: %+v", c.Status)
	}
	patch(t, pod, `{"metadata":{"finalizers":null}}`)
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
}

// What kubectl, Flux and Argo make of our conditions.
func TestKstatus(t *testing.T) {
	ns := env.Namespace(t)
	is := func(when string, want kstatus.Status) {
		t.Helper()
		got, err := kstatus.Compute(&unstructured.Unstructured{Object: unstructuredCache(t, ns, "cache")})
		if err != nil || got.Status != want {
			t.Errorf("%s: %+v (%v), want %s", when, got, err, want)
		}
	}
	c := create(t, ns, "cache")
	is("before the first pass", kstatus.InProgressStatus)
	pass(t, ns)
	is("after the first pass", kstatus.InProgressStatus)
	settle(t, ns)
	is("settled", kstatus.CurrentStatus)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "broken" })
	is("changed, before a pass", kstatus.InProgressStatus)
	until(t, ns, "cache", v1.ReasonImagePullBackOff)
	is("a node is broken", kstatus.InProgressStatus)
	update(t, c, func(c *v1.ClusteredCache) {
		c.Spec.Version, c.Spec.PodTemplate = "1.6.38", raw(`{"spec":{"restartPolicy":"Never"}}`)
	})
	until(t, ns, "cache", v1.ReasonInvalidOverlay)
	is("blocked", kstatus.FailedStatus)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version, c.Spec.PodTemplate = "broken", nil })
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Rollout = &v1.RolloutSpec{ProgressDeadlineSeconds: 2} })
	until(t, ns, "cache", v1.ReasonProgressDeadlineExceeded)
	is("past the deadline", kstatus.FailedStatus)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.38" })
	settle(t, ns)
	is("healed", kstatus.CurrentStatus)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Suspend = true })
	pass(t, ns)
	is("suspended", kstatus.CurrentStatus)
	update(t, c, func(c *v1.ClusteredCache) { c.Finalizers = append(c.Finalizers, "test.example.com/keep") })
	if err := env.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	is("being deleted", kstatus.TerminatingStatus)
	update(t, c, func(c *v1.ClusteredCache) { c.Finalizers = nil })
}

// A partition or OnDelete that someone set is understood: what they let through
// has settled, and nobody says that the new version runs.
func TestRolloutPausedBySomeone(t *testing.T) {
	for name, strategy := range map[string]string{
		"partition": `{"type":"RollingUpdate","rollingUpdate":{"partition":1}}`,
		"OnDelete":  `{"type":"OnDelete","rollingUpdate":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			ns := env.Namespace(t)
			c := create(t, ns, "cache")
			settle(t, ns)
			patch(t, get(t, ns, "cache", &appsv1.StatefulSet{}), `{"spec":{"updateStrategy":`+strategy+`}}`, client.FieldOwner("user"))
			update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "2" })
			wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonRolloutPaused)
			want := map[string]string{"partition": "2 of 3 nodes on the new version, paused by partition", "OnDelete": "0 of 3 nodes on the new version, paused by OnDelete"}[name]
			wantMessage(t, ns, "3 of 3 nodes ready; "+want)
			if c := get(t, ns, "cache", &v1.ClusteredCache{}); c.Status.CurrentVersion != "1.6.38" || available(c) != metav1.ConditionTrue {
				t.Errorf("held: %+v", c.Status)
			}
			before := versions(t, ns)
			pass(t, ns)
			if d := cmpDiff(before, versions(t, ns)); d != "" {
				t.Errorf("a pass over a held rollout wrote: %s", d)
			}
			for i := range 3 {
				_ = env.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: meta(ns, fmt.Sprintf("cache-%d", i))})
			}
			if name == "partition" {
				patch(t, get(t, ns, "cache", &appsv1.StatefulSet{}), `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`, client.FieldOwner("user"))
			}
			until(t, ns, "cache", v1.ReasonReady)
			if c := get(t, ns, "cache", &v1.ClusteredCache{}); c.Status.CurrentVersion != "2" {
				t.Errorf("let go: %+v", c.Status)
			}
		})
	}
}
