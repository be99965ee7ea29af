package stories_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
)

func service(ns, name string, owners ...metav1.OwnerReference) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta(ns, name)}
	s.OwnerReferences = owners
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.Selector = map[string]string{"app": "theirs"}
	s.Spec.Ports = []corev1.ServicePort{{Name: "theirs", Port: 80}}
	return s
}

func mustCreate(t *testing.T, o client.Object) {
	t.Helper()
	if err := env.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// A Service of the cache's name belongs to someone else, or to nobody: it is
// not written, the rest of the cache is, and deleting the cache leaves it.
func TestForeignObjectsAreNotWritten(t *testing.T) {
	for name, owner := range map[string][]metav1.OwnerReference{
		"controlled": {{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: "11111111-1111-4111-8111-111111111111", Controller: new(true)}},
		"free":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			ns := env.Namespace(t)
			boss := &corev1.ConfigMap{ObjectMeta: meta(ns, "boss")}
			mustCreate(t, boss)
			for i := range owner {
				owner[i].UID = boss.UID // one that lives: the garbage collector is real
			}
			theirs := service(ns, "cache", owner...)
			mustCreate(t, theirs)
			c := create(t, ns, "cache")
			f := settle(t, ns)
			wantVerdict(t, f, "cache", model.Stalled, v1.ReasonNameConflict)
			if m := verdict(t, f, "cache").Message; name == "controlled" && !strings.Contains(m, "ConfigMap boss") || name == "free" && !strings.Contains(m, v1.AdoptByAnnotation+"=cache") {
				t.Errorf("message: %s", m)
			}
			get(t, ns, "cache", &appsv1.StatefulSet{})
			if err := env.Client.Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			pass(t, ns)
			if s := get(t, ns, "cache", &corev1.Service{}); s.ResourceVersion != theirs.ResourceVersion {
				t.Errorf("written: %+v", s)
			}
		})
	}
}

func TestAdoption(t *testing.T) {
	ns := env.Namespace(t)
	theirs := service(ns, "cache")
	theirs.Labels = map[string]string{"by-hand": "stays"}
	theirs.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
	mustCreate(t, theirs)
	c := create(t, ns, "cache")
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	s := get(t, ns, "cache", &corev1.Service{})
	if !metav1.IsControlledBy(s, c) || s.UID != theirs.UID || s.Labels["by-hand"] != "stays" || len(s.Spec.Ports) != 2 {
		t.Errorf("adopted: %+v", s)
	}
	wantNothingToDo(t, ns)
}

// What a former cache of the same name left is the garbage collector's, unless
// the annotation says that it is to be kept (a restore from a backup).
func TestAdoptionFromAFormerCache(t *testing.T) {
	env := frozen(t) // the garbage collector would be faster than the pass
	ns := env.Namespace(t)
	stale := metav1.OwnerReference{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind, Name: "cache",
		UID: "22222222-2222-4222-8222-222222222222", Controller: new(true), BlockOwnerDeletion: new(true)}
	theirs := service(ns, "cache", stale)
	theirs.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
	left := service(ns, "nodes-cache", stale)
	c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}
	for _, o := range []client.Object{theirs, left, c} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	f := passOn(t, env, ns)
	wantVerdict(t, f, "cache", model.Progressing, v1.ReasonChildTerminating)
	s := &corev1.Service{}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), s); err != nil || len(s.OwnerReferences) != 1 || !metav1.IsControlledBy(s, c) {
		t.Errorf("adopted: %v, owners %+v", err, s.OwnerReferences)
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(left), s); err != nil || s.ResourceVersion != left.ResourceVersion {
		t.Errorf("written without the annotation: %v, %+v", err, s)
	}
}

// The client Service of cache nodes-x and the governing Service of cache x have
// one name. The owner keeps it, whichever is listed first.
func TestTwoCachesWantOneName(t *testing.T) {
	for _, order := range [][]string{{"x", "nodes-x"}, {"nodes-x", "x"}} {
		ns := env.Namespace(t)
		for _, name := range order {
			create(t, ns, name)
			settle(t, ns)
		}
		owner := get(t, ns, "nodes-x", &corev1.Service{}).OwnerReferences
		if owner[0].Name != order[0] {
			t.Errorf("%v: nodes-x belongs to %s", order, owner[0].Name)
		}
		wantVerdict(t, settle(t, ns), order[1], model.Stalled, v1.ReasonNameConflict)
		testenv.Eventually(t, "there is peace", func() bool {
			before := versions(t, ns)
			pass(t, ns)
			time.Sleep(300 * time.Millisecond)
			return cmpDiff(before, versions(t, ns)) == ""
		})
	}
}

// Immutable parts of an adopted StatefulSet are held back and named; the rest
// goes through. A selector of its own keeps the whole object back.
func TestAdoptedStatefulSetKeepsWhatCannotChange(t *testing.T) {
	ns := env.Namespace(t)
	adopted := func(name string, labels map[string]string) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: meta(ns, name)}
		s.Annotations = map[string]string{v1.AdoptByAnnotation: name}
		s.Spec.ServiceName = "old"
		s.Spec.Replicas = new(int32(1))
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		s.Spec.Template.Labels = labels
		s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "cache", Image: "old"}}
		return s
	}
	mustCreate(t, adopted("a", map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: "a"}))
	other := adopted("b", map[string]string{"app": "b"})
	mustCreate(t, other)
	create(t, ns, "a")
	create(t, ns, "b")
	f := pass(t, ns)
	wantVerdict(t, f, "a", model.Stalled, v1.ReasonImmutableField)
	if m := verdict(t, f, "a").Message; !strings.Contains(m, "spec.serviceName is old") || strings.Contains(m, "podManagementPolicy") {
		t.Errorf("message: %s", m)
	}
	if s := get(t, ns, "a", &appsv1.StatefulSet{}); *s.Spec.Replicas != 3 || s.Spec.ServiceName != "old" {
		t.Errorf("the rest did not go through: %+v", s.Spec)
	}
	wantVerdict(t, f, "b", model.Stalled, v1.ReasonImmutableField)
	if s := get(t, ns, "b", &appsv1.StatefulSet{}); s.ResourceVersion == "" || len(s.OwnerReferences) != 0 {
		t.Errorf("b was written: %+v", s.ObjectMeta)
	}
}

// Clients of a Service that is taken over keep the nodes that it finds until
// there are others.
func TestAdoptedServiceWaitsForNodes(t *testing.T) {
	ns := env.Namespace(t)
	theirs := service(ns, "cache")
	theirs.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
	mustCreate(t, theirs)
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Version = "broken" })
	testenv.Eventually(t, "no node comes up", func() bool {
		pass(t, ns)
		return strings.Contains(message(t, ns), "ImagePullBackOff")
	})
	wantVerdict(t, pass(t, ns), "cache", model.Progressing, v1.ReasonWaitingForNodes)
	if s := get(t, ns, "cache", &corev1.Service{}); s.Spec.Selector["app"] != "theirs" || len(s.OwnerReferences) > 0 {
		t.Errorf("taken over without a node: %+v", s)
	}
	update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.38" })
	settle(t, ns)
	if s := get(t, ns, "cache", &corev1.Service{}); s.Spec.Selector["app"] != "" || len(s.OwnerReferences) != 1 {
		t.Errorf("not taken over: %+v", s)
	}
}

// The disruption budget follows the size in the same pass (at one
// node there is none).
func TestDisruptionBudgetFollowsTheSize(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	pass(t, ns)
	pdb := get(t, ns, "cache", &policyv1.PodDisruptionBudget{})
	if pdb.Spec.MaxUnavailable == nil || pdb.Spec.MaxUnavailable.IntValue() != 1 || pdb.Spec.MinAvailable != nil {
		t.Errorf("%+v", pdb.Spec)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Size = 1 })
	pass(t, ns)
	gone(t, ns, "cache", &policyv1.PodDisruptionBudget{})
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Size = 3 })
	pass(t, ns)
	get(t, ns, "cache", &policyv1.PodDisruptionBudget{})
	settle(t, ns)
	wantNothingToDo(t, ns)
}

// A budget of the cache's name that is somebody else's is left alone when the
// cache needs none.
func TestForeignDisruptionBudgetIsNotDeleted(t *testing.T) {
	ns := env.Namespace(t)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: meta(ns, "cache")}
	pdb.Labels = map[string]string{v1.ManagedByLabel: v1.ManagedByValue}
	mustCreate(t, pdb)
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Size = 1 })
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	get(t, ns, "cache", &policyv1.PodDisruptionBudget{})
}

// An entry of a map that we write goes when we no longer write it; one that was
// added by hand stays.
func TestOnlyOurMapEntriesGo(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.PodTemplate = raw(`{"metadata":{"annotations":{"tier":"ours"}}}`)
	})
	pass(t, ns)
	patch(t, get(t, ns, "cache", &appsv1.StatefulSet{}), `{"spec":{"template":{"metadata":{"annotations":{"by-hand":"theirs"}}}}}`, client.FieldOwner("user"))
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.PodTemplate = nil })
	pass(t, ns)
	annotations := get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.Template.Annotations
	if _, ours := annotations["tier"]; ours || annotations["by-hand"] != "theirs" {
		t.Errorf("annotations: %v", annotations)
	}
}
