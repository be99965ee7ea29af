package stories_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
)

func TestCreateScaleUpgradeDelete(t *testing.T) {
	a, b := env.Namespace(t), env.Namespace(t)
	one := create(t, a, "one")
	create(t, a, "two", func(c *v1.ClusteredCache) { c.Spec.Size = 1 })
	create(t, b, "three")

	if v := verdict(t, pass(t, a, b), "one"); v.State != model.Progressing {
		t.Errorf("right after the first apply: %+v", v)
	}
	f := settle(t, a, b)
	wantVerdict(t, f, "one", model.Settled, v1.ReasonReady)
	c := get(t, a, "one", &v1.ClusteredCache{})
	if c.Status.CurrentVersion != "1.6.38" || c.Status.ReadyReplicas != 3 || c.Status.ObservedGeneration != c.Generation {
		t.Errorf("status: %+v", c.Status)
	}
	if want := "one-0.nodes-one." + a + ".svc:11211"; len(c.Status.Nodes) != 3 || c.Status.Nodes[0] != want {
		t.Errorf("nodes: %v, want three, the first %s", c.Status.Nodes, want)
	}
	// A single node needs no disruption budget.
	gone(t, a, "two", &policyv1.PodDisruptionBudget{})
	wantNothingToDo(t, a, b)

	t.Run("scale", func(t *testing.T) {
		update(t, one, func(c *v1.ClusteredCache) { c.Spec.Size = 5 })
		f := pass(t, a, b)
		wantVerdict(t, f, "one", model.Progressing, v1.ReasonNotObserved)
		if got := changesOf(f, "one", "StatefulSet"); len(got) != 1 || got[0].Path != "spec.replicas" || got[0].From != "3" || got[0].To != "5" {
			t.Errorf("changes: %+v", got)
		}
		wantVerdict(t, settle(t, a, b), "one", model.Settled, v1.ReasonReady)
		if s := get(t, a, "one", &appsv1.StatefulSet{}); s.Status.ReadyReplicas != 5 {
			t.Errorf("%d ready replicas", s.Status.ReadyReplicas)
		}
		wantNothingToDo(t, a, b)
	})
	t.Run("version", func(t *testing.T) {
		update(t, one, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.39" })
		f := pass(t, a)
		if s := stepOf(f, "one", "StatefulSet"); s.Restarts != 5 {
			t.Errorf("a new version restarts %d nodes, want 5", s.Restarts)
		}
		// Right after our own apply the old numbers still say that all is well.
		c := get(t, a, "one", &v1.ClusteredCache{})
		if available(c) == metav1.ConditionTrue || c.Status.CurrentVersion != "1.6.38" {
			t.Errorf("right after the apply: Available %s, version %s", available(c), c.Status.CurrentVersion)
		}
		settle(t, a)
		if c := get(t, a, "one", &v1.ClusteredCache{}); c.Status.CurrentVersion != "1.6.39" || available(c) != metav1.ConditionTrue {
			t.Errorf("after the rollout: Available %s, version %s", available(c), c.Status.CurrentVersion)
		}
		wantNothingToDo(t, a, b)
	})
	t.Run("delete", func(t *testing.T) {
		if err := env.Client.Delete(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		wantVerdict(t, pass(t, a), "one", model.Settled, v1.ReasonFinalized)
		for _, o := range []client.Object{&v1.ClusteredCache{}, &appsv1.StatefulSet{}, &corev1.Service{}} {
			testenv.Eventually(t, "one is collected", func() bool {
				return apierrors.IsNotFound(env.Client.Get(t.Context(), types.NamespacedName{Namespace: a, Name: "one"}, o))
			})
		}
	})
}

// A StatefulSet that someone scaled, a label that someone changed and one that
// someone removed, and a Service that is gone: one pass repairs it all and
// says who had taken what.
func TestDriftIsRepairedInOnePass(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache")
	settle(t, ns)
	as := func(manager string) client.FieldOwner { return client.FieldOwner(manager) }

	sts := get(t, ns, "cache", &appsv1.StatefulSet{})
	patch(t, sts, `{"spec":{"replicas":5}}`, as("horizontal-hand"))
	patch(t, get(t, ns, "cache", &corev1.Service{}), `{"metadata":{"labels":{"app.kubernetes.io/name":"other"}}}`, as("label-editor"))
	patch(t, get(t, ns, "cache", &policyv1.PodDisruptionBudget{}), `{"metadata":{"labels":{"app.kubernetes.io/instance":null}}}`, as("label-editor"))
	if err := env.Client.Delete(t.Context(), get(t, ns, "nodes-cache", &corev1.Service{})); err != nil {
		t.Fatal(err)
	}

	f := pass(t, ns)
	if got := changesOf(f, "cache", "StatefulSet"); len(got) != 1 || got[0].From != "5" || got[0].To != "3" || len(got[0].By) != 1 || got[0].By[0].Name != "horizontal-hand" {
		t.Errorf("StatefulSet: %+v", got)
	}
	if got := changesOf(f, "cache", "Service"); len(got) != 1 || got[0].Path != `metadata.labels["app.kubernetes.io/name"]` || got[0].By[0].Name != "label-editor" {
		t.Errorf("Service: %+v", got)
	}
	if got := changesOf(f, "cache", "PodDisruptionBudget"); len(got) != 1 || got[0].From != "" || got[0].To != `"cache"` {
		t.Errorf("PodDisruptionBudget: %+v", got)
	}
	get(t, ns, "nodes-cache", &corev1.Service{})
	if n := *get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.Replicas; n != 3 {
		t.Errorf("%d replicas", n)
	}
	settle(t, ns)
	wantNothingToDo(t, ns)
}

// A child that lost the label by which children are listed is found all the
// same: creating it is a conflict, and then it is looked at by name.
func TestUnlabelledChildIsFound(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache")
	settle(t, ns)
	for _, o := range []client.Object{&appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
		patch(t, get(t, ns, "cache", o), `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`, client.FieldOwner("helm"))
	}
	f := pass(t, ns)
	for _, kind := range []string{"StatefulSet", "Service", "PodDisruptionBudget"} {
		if got := changesOf(f, "cache", model.Kind(kind)); len(got) != 1 || got[0].From != `"Helm"` || got[0].By[0].Name != "helm" {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	settle(t, ns)
	wantNothingToDo(t, ns)
}

// One of three caches cannot be done: its StatefulSet is refused by a quota.
// The others are done, and its status says why.
func TestOneBrokenCacheAmongThree(t *testing.T) {
	good, bad := env.Namespace(t), env.Namespace(t)
	refuseStatefulSets(t, bad)
	create(t, good, "a")
	create(t, bad, "b")
	create(t, good, "c")
	f := settle(t, good, bad)
	wantVerdict(t, f, "b", model.NotDone, v1.ReasonApplyRejected)
	c := get(t, bad, "b", &v1.ClusteredCache{})
	if s := condition(c, v1.ConditionStalled); s.Status != metav1.ConditionTrue || !strings.Contains(s.Message, "quota") {
		t.Errorf("Stalled: %+v", s)
	}
	get(t, bad, "b", &corev1.Service{}) // the other children are there
	for _, name := range []string{"a", "c"} {
		if c := get(t, good, name, &v1.ClusteredCache{}); available(c) != metav1.ConditionTrue {
			t.Errorf("%s: %+v", name, c.Status)
		}
	}
	before := versions(t, bad)
	pass(t, bad)
	if diff := cmpDiff(before, versions(t, bad)); diff != "" {
		t.Errorf("a refusal that stays the same is written again:\n%s", diff)
	}
}
