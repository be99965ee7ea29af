package stories_test

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
)

// A condition of another writer survives ours, and each of ours is there once.
func TestForeignConditionSurvives(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settle(t, ns)
	status := `{"apiVersion":"cache.example.com/v1","kind":"ClusteredCache","status":{"conditions":[{"type":"BackupReady","status":"True","reason":"Done","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if err := env.Client.Status().Patch(t.Context(), get(t, ns, "cache", &v1.ClusteredCache{}), client.RawPatch("application/apply-patch+yaml", []byte(status)), client.FieldOwner("backup")); err != nil {
		t.Fatal(err)
	}
	wantNothingToDo(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Size = 2 })
	settle(t, ns)
	c = get(t, ns, "cache", &v1.ClusteredCache{})
	if len(c.Status.Conditions) != 4 || condition(c, "BackupReady").Status != metav1.ConditionTrue {
		t.Errorf("conditions: %+v", c.Status.Conditions)
	}
}

// Zeros are written, and absent numbers of the StatefulSet are zeros.
func TestZerosAreWritten(t *testing.T) {
	ns := env.Namespace(t)
	// Pods that are held not ready by the control plane's convention.
	create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.PodTemplate = raw(`{"metadata":{"annotations":{"controlplane.test/ready":"false"}}}`)
	})
	pass(t, ns)
	u := unstructuredCache(t, ns, "cache")
	for _, field := range []string{"readyReplicas", "updatedReplicas", "replicas"} {
		if n, ok := u["status"].(map[string]any)[field]; !ok || n.(int64) != 0 {
			t.Errorf("status.%s: %v, %v", field, n, ok)
		}
	}
}

// Times of conditions move with their status only: a pass that
// changes a message and a number leaves them.
func TestTransitionTimesMoveWithTheStatusOnly(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settle(t, ns)
	old := metav1.Now().Add(-3600e9)
	rewriteTimes(t, ns, "cache", metav1.NewTime(old))
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Size = 4 })
	pass(t, ns) // Available True -> False
	settle(t, ns)
	c = get(t, ns, "cache", &v1.ClusteredCache{})
	if at := condition(c, v1.ConditionStalled).LastTransitionTime; at.Unix() != old.Unix() {
		t.Errorf("Stalled stayed False and moved to %s", at)
	}
	if at := condition(c, v1.ConditionAvailable).LastTransitionTime; at.Unix() == old.Unix() {
		t.Error("Available changed twice and did not move")
	}
}

// Labels and annotations of the cache, such as those that tools set, do not
// restart anything.
func TestMetadataOfTheCacheDoesNotLeak(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Labels = map[string]string{"helm.sh/chart": "cache-1.2.3"} })
	settle(t, ns)
	before := get(t, ns, "cache", &appsv1.StatefulSet{}).Status.UpdateRevision
	update(t, c, func(c *v1.ClusteredCache) {
		c.Labels = map[string]string{"helm.sh/chart": "cache-1.2.4"}
		c.Annotations = map[string]string{"team": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	})
	wantNothingToDo(t, ns)
	if after := get(t, ns, "cache", &appsv1.StatefulSet{}).Status.UpdateRevision; after != before {
		t.Errorf("revision %s became %s", before, after)
	}
}

// A cache with another's finalizer is deleted before our first pass: nothing
// is added to it and nothing made for it.
func TestDeletedBeforeTheFirstPass(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Finalizers = []string{"other.example.com/x"} })
	if err := env.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if f := pass(t, ns); f.Total != 1 || len(f.Caches) != 0 {
		t.Errorf("%+v", f)
	}
	got := get(t, ns, "cache", &v1.ClusteredCache{})
	if len(got.Finalizers) != 1 {
		t.Errorf("finalizers: %v", got.Finalizers)
	}
	gone(t, ns, "cache", &appsv1.StatefulSet{})
	patch(t, got, `{"metadata":{"finalizers":null}}`)
}

// Our finalizer goes, alone: others stay, whatever their place.
func TestReleaseKeepsOtherFinalizers(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Finalizers = []string{"other.example.com/x", v1.Finalizer, "other.example.com/y"}
	})
	pass(t, ns)
	if err := env.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, pass(t, ns), "cache", model.Settled, v1.ReasonFinalized)
	got := get(t, ns, "cache", &v1.ClusteredCache{})
	if d := cmpDiff([]string{"other.example.com/x", "other.example.com/y"}, got.Finalizers); d != "" {
		t.Error(d)
	}
	patch(t, got, `{"metadata":{"finalizers":null}}`)
}

// A suspended cache is left as it is; being deleted it keeps its finalizer.
func TestSuspend(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settle(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Suspend, c.Spec.Size = true, 7 })
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonSuspended)
	if n := *get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.Replicas; n != 3 {
		t.Errorf("%d replicas", n)
	}
	if reason := condition(get(t, ns, "cache", &v1.ClusteredCache{}), v1.ConditionAvailable).Reason; reason != v1.ReasonSuspended {
		t.Errorf("Status column: %s", reason)
	}
	if err := env.Client.Delete(t.Context(), get(t, ns, "cache", &v1.ClusteredCache{})); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, settle(t, ns), "cache", model.Stalled, v1.ReasonSuspended)
	get(t, ns, "cache", &v1.ClusteredCache{})
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Suspend = false })
	pass(t, ns)
	gone(t, ns, "cache", &v1.ClusteredCache{})
}

func rewriteTimes(t *testing.T, ns, name string, at metav1.Time) {
	t.Helper()
	c := get(t, ns, name, &v1.ClusteredCache{})
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = at
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": c.Status.Conditions}})
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Status().Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", raw), client.FieldOwner(v1.FieldManager)); err != nil {
		t.Fatal(err)
	}
}

// The StatefulSet's numbers are of the generation before: they say that all is
// ready, and are not believed.
func TestStaleReadinessIsNotBelieved(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1", Size: 3}}
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	ready := func(generation int64) {
		s := &appsv1.StatefulSet{ObjectMeta: meta(ns, "cache")}
		status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":3,"readyReplicas":3,"updatedReplicas":3,"currentReplicas":3,"availableReplicas":3,"currentRevision":"a","updateRevision":"a"}}`, generation)
		if err := env.Client.Status().Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when, version string, status metav1.ConditionStatus, reason string) {
		t.Helper()
		passOn(t, env, ns)
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		if a := condition(c, v1.ConditionAvailable); c.Status.CurrentVersion != version || a.Status != status || a.Reason != reason || a.ObservedGeneration != c.Generation {
			t.Errorf("%s: version %q, %+v", when, c.Status.CurrentVersion, a)
		}
	}
	want("not seen yet", "", metav1.ConditionFalse, v1.ReasonNotObserved)
	ready(1)
	want("ready", "1", metav1.ConditionTrue, v1.ReasonReady)
	if err := env.Client.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":"2"}}`))); err != nil {
		t.Fatal(err)
	}
	want("numbers of the generation before", "1", metav1.ConditionUnknown, v1.ReasonNotObserved)
	want("and once more", "1", metav1.ConditionUnknown, v1.ReasonNotObserved)
	ready(2)
	want("rolled out", "2", metav1.ConditionTrue, v1.ReasonReady)
}

// A namespace that is being deleted takes nothing new: that is no failure of
// the cache, which goes with it.
func TestTerminatingNamespace(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache")
	keep := &corev1.ConfigMap{ObjectMeta: meta(ns, "keep")}
	keep.Finalizers = []string{"test.example.com/keep"}
	mustCreate(t, keep)
	if err := env.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: meta("", ns)}); err != nil {
		t.Fatal(err)
	}
	f := pass(t, ns)
	if v := verdict(t, f, "cache"); v.Reason != v1.ReasonNamespaceTerminating && v.Reason != v1.ReasonFinalized && v.Reason != v1.ReasonGone {
		t.Errorf("%+v", v)
	}
	testenv.Eventually(t, "the cache is gone", func() bool {
		pass(t, ns)
		return apierrors.IsNotFound(env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "cache"}, &v1.ClusteredCache{}))
	})
	patch(t, keep, `{"metadata":{"finalizers":null}}`)
}
