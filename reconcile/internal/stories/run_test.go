package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

func TestCreateScaleUpgradeDelete(t *testing.T) {
	t.Parallel()
	w, other := world.Shared(t).Named("one"), world.Shared(t)
	both := w.With(other)
	w.Cache()
	w.Named("two").Cache(`spec: {size: 1}`)
	other.Named("three").Cache()

	both.Pass().Cache().WantsState(model.Progressing)
	both.Settle().Wants(model.Settled, v1.ReasonReady)
	c := w.Stored()
	if c.Status.CurrentVersion != "1.6.38" || c.Status.ReadyReplicas != 3 || c.Status.ObservedGeneration != c.Generation {
		t.Errorf("status: %+v", c.Status)
	}
	if want := "one-0.nodes-one." + w.NS + ".svc:11211"; len(c.Status.Nodes) != 3 || c.Status.Nodes[0] != want {
		t.Errorf("nodes: %v, want three, the first %s", c.Status.Nodes, want)
	}
	// A single node needs no disruption budget.
	w.Named("two").Gone(&policyv1.PodDisruptionBudget{})
	both.NothingToDo()

	t.Run("scale", func(t *testing.T) {
		w.Edit(`spec: {size: 5}`)
		f := both.Pass().Wants(model.Progressing, v1.ReasonNotObserved)
		if got := f.Changes("StatefulSet"); len(got) != 1 || got[0].Path != "spec.replicas" || got[0].From != "3" || got[0].To != "5" {
			t.Errorf("changes: %+v", got)
		}
		both.Settle().Wants(model.Settled, v1.ReasonReady)
		if s := w.StatefulSet(); s.Status.ReadyReplicas != 5 {
			t.Errorf("%d ready replicas", s.Status.ReadyReplicas)
		}
		both.NothingToDo()
	})
	t.Run("version", func(t *testing.T) {
		w.Edit(`spec: {version: "1.6.39"}`)
		if s := w.Pass().Cache().Step("StatefulSet"); s.Restarts != 5 {
			t.Errorf("a new version restarts %d nodes, want 5", s.Restarts)
		}
		// Right after our own apply the old numbers still say that all is well.
		c := w.Stored()
		if world.Available(c) == metav1.ConditionTrue || c.Status.CurrentVersion != "1.6.38" {
			t.Errorf("right after the apply: Available %s, version %s", world.Available(c), c.Status.CurrentVersion)
		}
		w.Settle()
		if c := w.Stored(); c.Status.CurrentVersion != "1.6.39" || world.Available(c) != metav1.ConditionTrue {
			t.Errorf("after the rollout: Available %s, version %s", world.Available(c), c.Status.CurrentVersion)
		}
		both.NothingToDo()
	})
	t.Run("delete", func(t *testing.T) {
		w.Remove()
		w.Pass().Wants(model.Settled, v1.ReasonFinalized)
		w.Collected(&v1.ClusteredCache{}, &appsv1.StatefulSet{}, &corev1.Service{})
	})
}

// A StatefulSet that someone scaled, a label that someone changed and one that
// someone removed, and a Service that is gone: one pass repairs it all and
// says who had taken what.
func TestDriftIsRepairedInOnePass(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	as := func(manager string) client.FieldOwner { return client.FieldOwner(manager) }

	sts := w.StatefulSet()
	w.Patch(sts, `{"spec":{"replicas":5}}`, as("horizontal-hand"))
	w.Patch(w.ClientService(), `{"metadata":{"labels":{"app.kubernetes.io/name":"other"}}}`, as("label-editor"))
	w.Patch(w.Budget(), `{"metadata":{"labels":{"app.kubernetes.io/instance":null}}}`, as("label-editor"))
	w.Delete(w.NodesService())

	f := w.Pass()
	if got := f.Changes("StatefulSet"); len(got) != 1 || got[0].From != "5" || got[0].To != "3" || len(got[0].By) != 1 || got[0].By[0].Name != "horizontal-hand" {
		t.Errorf("StatefulSet: %+v", got)
	}
	if got := f.Changes("Service"); len(got) != 1 || got[0].Path != `metadata.labels["app.kubernetes.io/name"]` || got[0].By[0].Name != "label-editor" {
		t.Errorf("Service: %+v", got)
	}
	if got := f.Changes("PodDisruptionBudget"); len(got) != 1 || got[0].From != "" || got[0].To != `"cache"` {
		t.Errorf("PodDisruptionBudget: %+v", got)
	}
	w.NodesService()
	if n := *w.StatefulSet().Spec.Replicas; n != 3 {
		t.Errorf("%d replicas", n)
	}
	w.Settle()
	w.NothingToDo()
}

// A child that lost the label by which children are listed is found all the
// same: creating it is a conflict, and then it is looked at by name.
func TestUnlabelledChildIsFound(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	for _, o := range []client.Object{&appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
		w.Patch(world.Get(w, "cache", o), `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`, client.FieldOwner("helm"))
	}
	f := w.Pass()
	for _, kind := range []string{"StatefulSet", "Service", "PodDisruptionBudget"} {
		if got := f.Changes(model.Kind(kind)); len(got) != 1 || got[0].From != `"Helm"` || got[0].By[0].Name != "helm" {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	w.Settle()
	w.NothingToDo()
}

// One of three caches cannot be done: its StatefulSet is refused by a quota.
// The others are done, and its status says why.
func TestOneBrokenCacheAmongThree(t *testing.T) {
	t.Parallel()
	good, bad := world.Shared(t), world.Shared(t).Named("b")
	bad.Quota("count/statefulsets.apps", "0")
	good.Named("a").Cache()
	bad.Cache()
	good.Named("c").Cache()
	bad.With(good).Settle().Wants(model.NotDone, v1.ReasonApplyRejected)
	if s := bad.Condition(v1.ConditionStalled); s.Status != metav1.ConditionTrue || !strings.Contains(s.Message, "quota") {
		t.Errorf("Stalled: %+v", s)
	}
	bad.ClientService() // the other children are there
	for _, name := range []string{"a", "c"} {
		if c := good.Named(name).Stored(); world.Available(c) != metav1.ConditionTrue {
			t.Errorf("%s: %+v", name, c.Status)
		}
	}
	bad.WritesNothing("a pass after which the refusal is the same", func() { bad.Pass() })
}
