package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// A missing ConfigMap is waited for and is no failure; its content is a
// revision, its metadata is not; deleting it later does not roll nodes into a
// template that cannot start.
func TestConfig(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {config: {name: cfg}}`)
	f := w.Pass()
	f.Wants(model.Progressing, v1.ReasonConfigMapNotFound)
	if h := f.Caches[0].Plan.Holds; len(h) != 1 || h[0].Class != model.Waiting || !strings.Contains(h[0].Message, w.NS+"/cfg") {
		t.Errorf("holds: %+v", h)
	}
	w.Gone(&appsv1.StatefulSet{})
	w.ClientService()

	cfg := &corev1.ConfigMap{ObjectMeta: w.Meta("cfg"), Data: map[string]string{"a": "1", "b": "2"}}
	w.Create(cfg)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	w.NothingToDo()
	first := w.StatefulSet().Status.UpdateRevision

	w.Patch(cfg, `{"metadata":{"labels":{"touched":"yes"}}}`)
	w.NothingToDo()
	w.Patch(cfg, `{"data":{"a":"3"}}`)
	if s := w.Pass().Cache().Step("StatefulSet"); s.Restarts != 3 {
		t.Errorf("new content restarts %d nodes", s.Restarts)
	}
	w.Settle()
	second := w.StatefulSet().Status.UpdateRevision
	if first == second {
		t.Error("new content is no new revision")
	}

	w.Delete(cfg)
	w.Pass().Wants(model.Progressing, v1.ReasonConfigMapNotFound)
	w.Edit(`spec: {size: 1}`)
	w.Pass()
	w.Budget() // the nodes are still three
	if third := w.StatefulSet().Status.UpdateRevision; third != second {
		t.Error("a rollout without the ConfigMap")
	}
}

// With Wait the ConfigMap is looked for again, and the run ends when it came.
func TestWaitSeesTheConfigMapCome(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {config: {name: cfg}}`)
	time.AfterFunc(2*time.Second, func() {
		_ = w.Env.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: w.Meta("cfg")})
	})
	w.Settle().Wants(model.Settled, v1.ReasonReady)
}

func TestWaitTimesOut(t *testing.T) {
	w := world.Shared(t)
	w.Cache(`spec: {version: broken}`) // an image that cannot be pulled
	o := reconcile.Options{Scope: observe.Scope{Namespaces: []string{w.NS}}, Concurrency: 1, Wait: true, Timeout: 2 * time.Second}
	if f := w.Run(w.Product(nil), o); !f.TimedOut {
		t.Errorf("%+v", f)
	}
	o = reconcile.Options{Scope: o.Scope, Concurrency: 1, LingerUntil: time.Now().Add(2 * time.Second)}
	if f := w.Run(w.Product(nil), o); f.TimedOut {
		t.Error("lingering insists")
	}
	o = reconcile.Options{Scope: o.Scope, Concurrency: 1, LingerUntil: time.Now().Add(-time.Second)}
	start := time.Now()
	w.Run(w.Product(nil), o)
	if took := time.Since(start); took > time.Second {
		t.Errorf("lingered for %s after its time", took)
	}
}
