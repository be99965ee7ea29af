package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"context"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// interrupted makes a pass over w.NS that stands still before its k-th request
// until meanwhile has run. It tells whether there was a k-th request.
func interrupted(w *world.World, k int, meanwhile func()) bool {
	w.Helper()
	reached := false
	c := w.Product(func(n int, _ *http.Request) {
		if n == k {
			reached = true
			meanwhile()
		}
	})
	w.Run(c, reconcile.Options{Concurrency: 1})
	return reached
}

// A pass stands still between any two of its requests while the spec changes
// and a newer pass applies the change. When it goes on it must not put the old
// spec back.
func TestAPausedPassNeverPutsTheOldSpecBack(t *testing.T) {
	t.Parallel()
	for _, scenario := range []struct {
		name    string
		prepare func(w *world.World)
	}{
		{"existing children", func(w *world.World) {
			w.Cache()
			w.Pass()
			w.Edit(`spec: {version: "1.6.39", size: 2}`)
		}},
		{"new cache", func(w *world.World) { w.Cache() }},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			world.EachRequest(t, 5, func(w *world.World, k int) bool {
				scenario.prepare(w)
				reached := interrupted(w, k, func() {
					w.Edit(`spec: {version: "1.6.40", size: 4}`)
					w.Pass()
				})
				if !reached {
					return false
				}
				s := w.StatefulSet()
				if image := s.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":1.6.40") || *s.Spec.Replicas != 4 {
					w.Errorf("%s with %d replicas", image, *s.Spec.Replicas)
				}
				if c := w.Stored(); c.Status.ObservedGeneration != c.Generation {
					w.Errorf("status of generation %d, spec of %d", c.Status.ObservedGeneration, c.Generation)
				}
				return true
			})
		})
	}
}

// A cache is deleted while a pass stands still between any two requests: it
// does not come back, and no child is left for good.
func TestADeletedCacheIsNotResurrected(t *testing.T) {
	t.Parallel()
	world.EachRequest(t, 5, func(w *world.World, k int) bool {
		w.Cache()
		if !interrupted(w, k, func() { deleteNow(w) }) {
			return false
		}
		w.Pass()
		w.Gone(&v1.ClusteredCache{})
		w.Collected(&appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{})
		return true
	})
}

// A cache is deleted and another of its name made while a pass stands still:
// the new one is not given the old one's status or children.
func TestARecreatedCacheGetsNothingOfTheOldOne(t *testing.T) {
	t.Parallel()
	world.EachRequest(t, 5, func(w *world.World, k int) bool {
		w.Cache()
		w.Settle()
		w.Edit(`spec: {size: 2}`)
		var fresh *v1.ClusteredCache
		reached := interrupted(w, k, func() {
			deleteNow(w)
			fresh = w.Cache(`spec: {version: "9.9.9", size: 1}`)
		})
		if !reached {
			return false
		}
		c := w.Stored()
		if c.UID != fresh.UID || c.Status.CurrentVersion == "1.6.38" {
			w.Errorf("uid %s (want %s), status %+v", c.UID, fresh.UID, c.Status)
		}
		w.Settle()
		if c := w.Stored(); c.Status.CurrentVersion != "9.9.9" {
			w.Errorf("version %q in the end", c.Status.CurrentVersion)
		}
		return true
	})
}

// deleteNow deletes a cache and lets go of it, as another pass would.
func deleteNow(w *world.World) {
	w.Helper()
	w.Remove()
	w.Pass()
	w.Gone(&v1.ClusteredCache{})
}

// A pass that is told to stop ends the request under way and sends no other
// write, wherever it is; the next pass goes on from there.
func TestStoppedAtAStepBoundary(t *testing.T) {
	t.Parallel()
	world.EachRequest(t, 5, func(w *world.World, k int) bool {
		w.Cache()
		ctx, stop := context.WithCancel(w.Context())
		stopped, writes := false, 0
		c := w.Product(func(n int, r *http.Request) {
			if stopped && r.Method != http.MethodGet {
				writes++
			}
			if n == k {
				stopped = true
				stop()
			}
		})
		f, err := reconcile.Run(ctx, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{w.NS}}, Concurrency: 1})
		stop()
		if !stopped {
			return false
		}
		if err != nil || !f.Interrupted || writes > 0 {
			w.Errorf("%d writes afterwards, interrupted %t, %v", writes, f.Interrupted, err)
		}
		w.Settle().Wants(model.Settled, v1.ReasonReady)
		return true
	})
}
