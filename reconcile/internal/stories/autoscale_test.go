package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"os/exec"
	"path/filepath"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// applied is a cache as a user applies it, without a size: that is left to
// whoever scales.
const applied = `{"apiVersion":"cache.example.com/v1","kind":"ClusteredCache","metadata":{"name":"cache"},"spec":{"version":"1.6.38"}}`

// kubectl scale and a HorizontalPodAutoscaler, with the real controller, own the
// size of a cache whose manifest leaves it out: applying the manifest again and
// passes do not take it back. There are no metrics: the autoscaler
// raises the size to its minimum.
func TestScaleSubresource(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	c := &v1.ClusteredCache{ObjectMeta: w.Meta("cache")}
	apply := func() {
		t.Helper()
		if err := w.Env.Client.Patch(t.Context(), c, client.RawPatch("application/apply-patch+yaml", []byte(applied)), client.FieldOwner("user")); err != nil {
			t.Fatal(err)
		}
	}
	size := func(want int32) {
		t.Helper()
		w.Settle()
		sts, c := w.StatefulSet(), w.Stored()
		if c.Spec.Size != want || *sts.Spec.Replicas != want || c.Status.Replicas != want {
			t.Errorf("size %d, replicas %d, status %d, want %d", c.Spec.Size, *sts.Spec.Replicas, c.Status.Replicas, want)
		}
	}
	apply()
	size(1)
	scale := exec.Command(filepath.Join(w.Env.Assets, "kubectl"), "--kubeconfig", w.Env.Kubeconfig, "-n", w.NS, "scale", "clusteredcache/cache", "--replicas=2")
	if out, err := scale.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	size(2)
	apply()
	size(2)

	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: w.Meta("cache")}
	hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind, Name: "cache"}
	hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = new(int32(4)), 6
	hpa.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
	}}}
	w.Create(hpa)
	w.Eventually("the autoscaler has set the size", func() bool {
		return w.Stored().Spec.Size == 4
	})
	size(4)
	apply()
	size(4)
	w.NothingToDo()
	w.Delete(hpa)
}

// Whoever scales the StatefulSet instead of the cache is set back once and named.
func TestScalingTheStatefulSetIsSetBack(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	scale := exec.Command(filepath.Join(w.Env.Assets, "kubectl"), "--kubeconfig", w.Env.Kubeconfig, "-n", w.NS, "scale", "sts/cache", "--replicas=5")
	if out, err := scale.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := w.Pass().Changes("StatefulSet")
	if len(got) != 1 || got[0].Path != "spec.replicas" || got[0].From != "5" || got[0].To != "3" || len(got[0].By) != 1 || got[0].By[0].Name != "kubectl" {
		t.Errorf("changes: %+v", got)
	}
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	w.NothingToDo()
}
