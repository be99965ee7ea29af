package stories_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// A missing ConfigMap is waited for and is no failure; its content is a
// revision, its metadata is not; deleting it later does not roll nodes into a
// template that cannot start.
func TestConfig(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Config = &v1.ConfigReference{Name: "cfg"} })
	f := pass(t, ns)
	wantVerdict(t, f, "cache", model.Progressing, v1.ReasonConfigMapNotFound)
	if h := f.Caches[0].Plan.Holds; len(h) != 1 || h[0].Class != model.Waiting || !strings.Contains(h[0].Message, ns+"/cfg") {
		t.Errorf("holds: %+v", h)
	}
	gone(t, ns, "cache", &appsv1.StatefulSet{})
	get(t, ns, "cache", &corev1.Service{})

	cfg := &corev1.ConfigMap{ObjectMeta: meta(ns, "cfg"), Data: map[string]string{"a": "1", "b": "2"}}
	mustCreate(t, cfg)
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	wantNothingToDo(t, ns)
	first := get(t, ns, "cache", &appsv1.StatefulSet{}).Status.UpdateRevision

	patch(t, cfg, `{"metadata":{"labels":{"touched":"yes"}}}`)
	wantNothingToDo(t, ns)
	patch(t, cfg, `{"data":{"a":"3"}}`)
	if s := stepOf(pass(t, ns), "cache", "StatefulSet"); s.Restarts != 3 {
		t.Errorf("new content restarts %d nodes", s.Restarts)
	}
	settle(t, ns)
	second := get(t, ns, "cache", &appsv1.StatefulSet{}).Status.UpdateRevision
	if first == second {
		t.Error("new content is no new revision")
	}

	if err := env.Client.Delete(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, pass(t, ns), "cache", model.Progressing, v1.ReasonConfigMapNotFound)
	update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Size = 1 })
	pass(t, ns)
	get(t, ns, "cache", &policyv1.PodDisruptionBudget{}) // the nodes are still three
	if third := get(t, ns, "cache", &appsv1.StatefulSet{}).Status.UpdateRevision; third != second {
		t.Error("a rollout without the ConfigMap")
	}
}

// With Wait the ConfigMap is looked for again, and the run ends when it came.
func TestWaitSeesTheConfigMapCome(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Config = &v1.ConfigReference{Name: "cfg"} })
	time.AfterFunc(2*time.Second, func() {
		_ = env.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta(ns, "cfg")})
	})
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
}

func TestWaitTimesOut(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Version = "broken" }) // an image that cannot be pulled
	o := reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Wait: true, Timeout: 2 * time.Second}
	if f := runWith(t, productClient(t, nil), o); !f.TimedOut {
		t.Errorf("%+v", f)
	}
	o = reconcile.Options{Scope: o.Scope, Concurrency: 1, LingerUntil: time.Now().Add(2 * time.Second)}
	if f := runWith(t, productClient(t, nil), o); f.TimedOut {
		t.Error("lingering insists")
	}
	o = reconcile.Options{Scope: o.Scope, Concurrency: 1, LingerUntil: time.Now().Add(-time.Second)}
	start := time.Now()
	runWith(t, productClient(t, nil), o)
	if took := time.Since(start); took > time.Second {
		t.Errorf("lingered for %s after its time", took)
	}
}
