package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// A Service of the cache's name belongs to someone else, or to nobody: it is
// not written, the rest of the cache is, and deleting the cache leaves it.
func TestForeignObjectsAreNotWritten(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string][]metav1.OwnerReference{
		"controlled": {{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: "11111111-1111-4111-8111-111111111111", Controller: new(true)}},
		"free":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := world.Shared(t)
			boss := &corev1.ConfigMap{ObjectMeta: w.Meta("boss")}
			w.Create(boss)
			for i := range owner {
				owner[i].UID = boss.UID // one that lives: the garbage collector is real
			}
			theirs := w.SomeService("cache", owner...)
			w.Create(theirs)
			c := w.Cache()
			f := w.Settle()
			f.Wants(model.Stalled, v1.ReasonNameConflict)
			if m := f.Verdict().Message; name == "controlled" && !strings.Contains(m, "ConfigMap boss") || name == "free" && !strings.Contains(m, v1.AdoptByAnnotation+"=cache") {
				t.Errorf("message: %s", m)
			}
			w.StatefulSet()
			w.Delete(c)
			w.Pass()
			if s := w.ClientService(); s.ResourceVersion != theirs.ResourceVersion {
				t.Errorf("written: %+v", s)
			}
		})
	}
}

func TestAdoption(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	theirs := w.SomeService("cache")
	theirs.Labels = map[string]string{"by-hand": "stays"}
	theirs.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
	w.Create(theirs)
	c := w.Cache()
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	s := w.ClientService()
	if !metav1.IsControlledBy(s, c) || s.UID != theirs.UID || s.Labels["by-hand"] != "stays" || len(s.Spec.Ports) != 2 {
		t.Errorf("adopted: %+v", s)
	}
	w.NothingToDo()
}

// What a former cache of the same name left is the garbage collector's, unless
// the annotation says that it is to be kept (a restore from a backup).
func TestAdoptionFromAFormerCache(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t) // the garbage collector would be faster than the pass
	stale := metav1.OwnerReference{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind, Name: "cache",
		UID: "22222222-2222-4222-8222-222222222222", Controller: new(true), BlockOwnerDeletion: new(true)}
	theirs := w.SomeService("cache", stale)
	theirs.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
	left := w.SomeService("nodes-cache", stale)
	c := &v1.ClusteredCache{ObjectMeta: w.Meta("cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}
	for _, o := range []client.Object{theirs, left, c} {
		w.Create(o)
	}
	f := w.Pass()
	f.Wants(model.Progressing, v1.ReasonChildTerminating)
	s := &corev1.Service{}
	if err := w.Env.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), s); err != nil || len(s.OwnerReferences) != 1 || !metav1.IsControlledBy(s, c) {
		t.Errorf("adopted: %v, owners %+v", err, s.OwnerReferences)
	}
	if err := w.Env.Client.Get(t.Context(), client.ObjectKeyFromObject(left), s); err != nil || s.ResourceVersion != left.ResourceVersion {
		t.Errorf("written without the annotation: %v, %+v", err, s)
	}
}

// The client Service of cache nodes-x and the governing Service of cache x have
// one name. The owner keeps it, whichever is listed first.
func TestTwoCachesWantOneName(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"x", "nodes-x"}, {"nodes-x", "x"}} {
		w := world.Shared(t)
		for _, name := range order {
			w.Named(name).Cache()
			w.Settle()
		}
		owner := world.Get(w, "nodes-x", &corev1.Service{}).OwnerReferences
		if owner[0].Name != order[0] {
			t.Errorf("%v: nodes-x belongs to %s", order, owner[0].Name)
		}
		w.Settle().Of(order[1]).Wants(model.Stalled, v1.ReasonNameConflict)
		w.Eventually("there is peace", func() bool {
			before := w.Versions()
			w.Pass()
			time.Sleep(300 * time.Millisecond)
			return cmp.Diff(before, w.Versions()) == ""
		})
	}
}

// Immutable parts of an adopted StatefulSet are held back and named; the rest
// goes through. A selector of its own keeps the whole object back.
func TestAdoptedStatefulSetKeepsWhatCannotChange(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	adopted := func(name string, labels map[string]string) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: w.Meta(name)}
		s.Annotations = map[string]string{v1.AdoptByAnnotation: name}
		s.Spec.ServiceName = "old"
		s.Spec.Replicas = new(int32(1))
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		s.Spec.Template.Labels = labels
		s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "cache", Image: "old"}}
		return s
	}
	w.Create(adopted("a", map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: "a"}))
	other := adopted("b", map[string]string{"app": "b"})
	w.Create(other)
	w.Named("a").Cache()
	w.Named("b").Cache()
	f := w.Pass()
	f.Of("a").Wants(model.Stalled, v1.ReasonImmutableField)
	if m := f.Of("a").Verdict.Message; !strings.Contains(m, "spec.serviceName is old") || strings.Contains(m, "podManagementPolicy") {
		t.Errorf("message: %s", m)
	}
	if s := w.Named("a").StatefulSet(); *s.Spec.Replicas != 3 || s.Spec.ServiceName != "old" {
		t.Errorf("the rest did not go through: %+v", s.Spec)
	}
	f.Of("b").Wants(model.Stalled, v1.ReasonImmutableField)
	if s := w.Named("b").StatefulSet(); s.ResourceVersion == "" || len(s.OwnerReferences) != 0 {
		t.Errorf("b was written: %+v", s.ObjectMeta)
	}
}

// Clients of a Service that is taken over keep the nodes that it finds until
// there are others.
func TestAdoptedServiceWaitsForNodes(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	theirs := w.SomeService("cache")
	theirs.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
	w.Create(theirs)
	w.Cache(`spec: {version: broken}`)
	w.Eventually("no node comes up", func() bool {
		w.Pass()
		return strings.Contains(w.Message(), "ImagePullBackOff")
	})
	w.Pass().Wants(model.Progressing, v1.ReasonWaitingForNodes)
	if s := w.ClientService(); s.Spec.Selector["app"] != "theirs" || len(s.OwnerReferences) > 0 {
		t.Errorf("taken over without a node: %+v", s)
	}
	w.Edit(`spec: {version: "1.6.38"}`)
	w.Settle()
	if s := w.ClientService(); s.Spec.Selector["app"] != "" || len(s.OwnerReferences) != 1 {
		t.Errorf("not taken over: %+v", s)
	}
}

// The disruption budget follows the size in the same pass (at one
// node there is none).
func TestDisruptionBudgetFollowsTheSize(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Pass()
	pdb := w.Budget()
	if pdb.Spec.MaxUnavailable == nil || pdb.Spec.MaxUnavailable.IntValue() != 1 || pdb.Spec.MinAvailable != nil {
		t.Errorf("%+v", pdb.Spec)
	}
	w.Edit(`spec: {size: 1}`)
	w.Pass()
	w.Gone(&policyv1.PodDisruptionBudget{})
	w.Edit(`spec: {size: 3}`)
	w.Pass()
	w.Budget()
	w.Settle()
	w.NothingToDo()
}

// A budget of the cache's name that is somebody else's is left alone when the
// cache needs none.
func TestForeignDisruptionBudgetIsNotDeleted(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: w.Meta("cache")}
	pdb.Labels = map[string]string{v1.ManagedByLabel: v1.ManagedByValue}
	w.Create(pdb)
	w.Cache(`spec: {size: 1}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	w.Budget()
}

// An entry of a map that we write goes when we no longer write it; one that was
// added by hand stays.
func TestOnlyOurMapEntriesGo(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {podTemplate: {"metadata":{"annotations":{"tier":"ours"}}}}`)
	w.Pass()
	w.Patch(w.StatefulSet(), `{"spec":{"template":{"metadata":{"annotations":{"by-hand":"theirs"}}}}}`, client.FieldOwner("user"))
	w.Edit(`spec: {podTemplate: null}`)
	w.Pass()
	annotations := w.StatefulSet().Spec.Template.Annotations
	if _, ours := annotations["tier"]; ours || annotations["by-hand"] != "theirs" {
		t.Errorf("annotations: %v", annotations)
	}
}
