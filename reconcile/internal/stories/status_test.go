package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// A condition of another writer survives ours, and each of ours is there once.
func TestForeignConditionSurvives(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	status := `{"apiVersion":"cache.example.com/v1","kind":"ClusteredCache","status":{"conditions":[{"type":"BackupReady","status":"True","reason":"Done","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if err := w.Env.Client.Status().Patch(t.Context(), w.Stored(), client.RawPatch("application/apply-patch+yaml", []byte(status)), client.FieldOwner("backup")); err != nil {
		t.Fatal(err)
	}
	w.NothingToDo()
	w.Edit(`spec: {size: 2}`)
	w.Settle()
	c := w.Stored()
	if len(c.Status.Conditions) != 4 || world.ConditionOf(c, "BackupReady").Status != metav1.ConditionTrue {
		t.Errorf("conditions: %+v", c.Status.Conditions)
	}
}

// Zeros are written, and absent numbers of the StatefulSet are zeros.
func TestZerosAreWritten(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	// Pods that are held not ready by the control plane's convention.
	w.Cache(`spec: {podTemplate: {"metadata":{"annotations":{"controlplane.test/ready":"false"}}}}`)
	w.Pass()
	u := w.Unstructured().Object
	for _, field := range []string{"readyReplicas", "updatedReplicas", "replicas"} {
		if n, ok := u["status"].(map[string]any)[field]; !ok || n.(int64) != 0 {
			t.Errorf("status.%s: %v, %v", field, n, ok)
		}
	}
}

// Times of conditions move with their status only: a pass that
// changes a message and a number leaves them.
func TestTransitionTimesMoveWithTheStatusOnly(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	old := metav1.Now().Add(-3600e9)
	rewriteTimes(w, metav1.NewTime(old))
	w.Edit(`spec: {size: 4}`)
	w.Pass() // Available True -> False
	w.Settle()
	c := w.Stored()
	if at := world.ConditionOf(c, v1.ConditionStalled).LastTransitionTime; at.Unix() != old.Unix() {
		t.Errorf("Stalled stayed False and moved to %s", at)
	}
	if at := world.ConditionOf(c, v1.ConditionAvailable).LastTransitionTime; at.Unix() == old.Unix() {
		t.Error("Available changed twice and did not move")
	}
}

// Labels and annotations of the cache, such as those that tools set, do not
// restart anything.
func TestMetadataOfTheCacheDoesNotLeak(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`metadata: {labels: {"helm.sh/chart": "cache-1.2.3"}}`)
	w.Settle()
	before := w.StatefulSet().Status.UpdateRevision
	w.Edit(`metadata: {labels: {"helm.sh/chart": "cache-1.2.4"}, annotations: {team: x, "kubectl.kubernetes.io/last-applied-configuration": "{}"}}`)
	w.NothingToDo()
	if after := w.StatefulSet().Status.UpdateRevision; after != before {
		t.Errorf("revision %s became %s", before, after)
	}
}

// A cache with another's finalizer is deleted before our first pass: nothing
// is added to it and nothing made for it.
func TestDeletedBeforeTheFirstPass(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	c := w.Cache(`metadata: {finalizers: ["other.example.com/x"]}`)
	w.Delete(c)
	if f := w.Pass(); f.Total != 1 || len(f.Caches) != 0 {
		t.Errorf("%+v", f)
	}
	got := w.Stored()
	if len(got.Finalizers) != 1 {
		t.Errorf("finalizers: %v", got.Finalizers)
	}
	w.Gone(&appsv1.StatefulSet{})
	w.Patch(got, `{"metadata":{"finalizers":null}}`)
}

// Our finalizer goes, alone: others stay, whatever their place.
func TestReleaseKeepsOtherFinalizers(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	c := w.Cache(amongOthers)
	w.Pass()
	w.Delete(c)
	w.Pass().Wants(model.Settled, v1.ReasonFinalized)
	got := w.Stored()
	if d := cmp.Diff([]string{"other.example.com/x", "other.example.com/y"}, got.Finalizers); d != "" {
		t.Error(d)
	}
	w.Patch(got, `{"metadata":{"finalizers":null}}`)
}

// A suspended cache is left as it is; being deleted it keeps its finalizer.
func TestSuspend(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	w.Edit(`spec: {suspend: true, size: 7}`)
	w.Settle().Wants(model.Settled, v1.ReasonSuspended)
	if n := *w.StatefulSet().Spec.Replicas; n != 3 {
		t.Errorf("%d replicas", n)
	}
	if reason := w.Condition(v1.ConditionAvailable).Reason; reason != v1.ReasonSuspended {
		t.Errorf("Status column: %s", reason)
	}
	w.Delete(w.Stored())
	w.Settle().Wants(model.Stalled, v1.ReasonSuspended)
	w.Stored()
	w.Edit(`spec: {suspend: false}`)
	w.Pass()
	w.Gone(&v1.ClusteredCache{})
}

func rewriteTimes(w *world.World, at metav1.Time) {
	w.Helper()
	c := w.Stored()
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = at
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": c.Status.Conditions}})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.Env.Client.Status().Patch(w.Context(), c, client.RawPatch("application/merge-patch+json", raw), client.FieldOwner(v1.FieldManager)); err != nil {
		w.Fatal(err)
	}
}

// The StatefulSet's numbers are of the generation before: they say that all is
// ready, and are not believed.
func TestStaleReadinessIsNotBelieved(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t)
	c := &v1.ClusteredCache{ObjectMeta: w.Meta("cache"), Spec: v1.ClusteredCacheSpec{Version: "1", Size: 3}}
	w.Create(c)
	w.Pass()
	ready := func(generation int64) {
		s := &appsv1.StatefulSet{ObjectMeta: w.Meta("cache")}
		status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":3,"readyReplicas":3,"updatedReplicas":3,"currentReplicas":3,"availableReplicas":3,"currentRevision":"a","updateRevision":"a"}}`, generation)
		if err := w.Env.Client.Status().Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when, version string, status metav1.ConditionStatus, reason string) {
		t.Helper()
		w.Pass()
		w.Read(c)
		if a := world.ConditionOf(c, v1.ConditionAvailable); c.Status.CurrentVersion != version || a.Status != status || a.Reason != reason || a.ObservedGeneration != c.Generation {
			t.Errorf("%s: version %q, %+v", when, c.Status.CurrentVersion, a)
		}
	}
	want("not seen yet", "", metav1.ConditionFalse, v1.ReasonNotObserved)
	ready(1)
	want("ready", "1", metav1.ConditionTrue, v1.ReasonReady)
	if err := w.Env.Client.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":"2"}}`))); err != nil {
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
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Keep()
	w.DeleteNamespace()
	f := w.Pass()
	if v := f.Verdict(); v.Reason != v1.ReasonNamespaceTerminating && v.Reason != v1.ReasonFinalized && v.Reason != v1.ReasonGone {
		t.Errorf("%+v", v)
	}
	w.Eventually("the cache is gone", func() bool {
		w.Pass()
		return apierrors.IsNotFound(w.Env.Client.Get(t.Context(), client.ObjectKey{Namespace: w.NS, Name: "cache"}, &v1.ClusteredCache{}))
	})
}
