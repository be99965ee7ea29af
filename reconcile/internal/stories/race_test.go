package stories_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// interrupted makes a pass over ns that stands still before its k-th request
// until meanwhile has run. It tells whether there was a k-th request.
func interrupted(t *testing.T, ns string, k int, meanwhile func()) bool {
	t.Helper()
	reached := false
	c := productClient(t, func(n int, _ *http.Request) {
		if n == k {
			reached = true
			meanwhile()
		}
	})
	runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})
	return reached
}

// A pass stands still between any two of its requests while the spec changes
// and a newer pass applies the change. When it goes on it must not put the old
// spec back.
func TestAPausedPassNeverPutsTheOldSpecBack(t *testing.T) {
	for _, scenario := range []struct {
		name    string
		prepare func(t *testing.T, ns string)
	}{
		{"existing children", func(t *testing.T, ns string) {
			c := create(t, ns, "cache")
			pass(t, ns)
			update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version, c.Spec.Size = "1.6.39", 2 })
		}},
		{"new cache", func(t *testing.T, ns string) { create(t, ns, "cache") }},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			for k := 1; ; k++ {
				ns := env.Namespace(t)
				scenario.prepare(t, ns)
				reached := interrupted(t, ns, k, func() {
					update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Version, c.Spec.Size = "1.6.40", 4 })
					pass(t, ns)
				})
				if !reached {
					if k < 6 {
						t.Fatalf("only %d requests: the test does not test", k-1)
					}
					break
				}
				s := get(t, ns, "cache", &appsv1.StatefulSet{})
				if image := s.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":1.6.40") || *s.Spec.Replicas != 4 {
					t.Errorf("paused before request %d: %s with %d replicas", k, image, *s.Spec.Replicas)
				}
				if c := get(t, ns, "cache", &v1.ClusteredCache{}); c.Status.ObservedGeneration != c.Generation {
					t.Errorf("paused before request %d: status of generation %d, spec of %d", k, c.Status.ObservedGeneration, c.Generation)
				}
			}
		})
	}
}

// A cache is deleted while a pass stands still between any two requests: it
// does not come back, and no child is left for good.
func TestADeletedCacheIsNotResurrected(t *testing.T) {
	for k := 1; ; k++ {
		ns := env.Namespace(t)
		create(t, ns, "cache")
		reached := interrupted(t, ns, k, func() { deleteNow(t, ns, "cache") })
		if !reached {
			break
		}
		pass(t, ns)
		gone(t, ns, "cache", &v1.ClusteredCache{})
		for _, o := range []client.Object{&appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
			testenv.Eventually(t, "children of a deleted cache are collected", func() bool {
				return apierrors.IsNotFound(env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "cache"}, o))
			})
		}
	}
}

// A cache is deleted and another of its name made while a pass stands still:
// the new one is not given the old one's status or children.
func TestARecreatedCacheGetsNothingOfTheOldOne(t *testing.T) {
	for k := 1; ; k++ {
		ns := env.Namespace(t)
		create(t, ns, "cache")
		settle(t, ns)
		update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Size = 2 })
		var fresh *v1.ClusteredCache
		reached := interrupted(t, ns, k, func() {
			deleteNow(t, ns, "cache")
			fresh = create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Version, c.Spec.Size = "9.9.9", 1 })
		})
		if !reached {
			break
		}
		c := get(t, ns, "cache", &v1.ClusteredCache{})
		if c.UID != fresh.UID || c.Status.CurrentVersion == "1.6.38" {
			t.Errorf("paused before request %d: uid %s (want %s), status %+v", k, c.UID, fresh.UID, c.Status)
		}
		settle(t, ns)
		if c := get(t, ns, "cache", &v1.ClusteredCache{}); c.Status.CurrentVersion != "9.9.9" {
			t.Errorf("paused before request %d: version %q in the end", k, c.Status.CurrentVersion)
		}
	}
}

// deleteNow deletes a cache and lets go of it, as another pass would.
func deleteNow(t *testing.T, ns, name string) {
	t.Helper()
	c := get(t, ns, name, &v1.ClusteredCache{})
	if err := env.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	pass(t, ns)
	gone(t, ns, name, &v1.ClusteredCache{})
}

// A pass that is told to stop ends the request under way and sends no other
// write, wherever it is; the next pass goes on from there.
func TestStoppedAtAStepBoundary(t *testing.T) {
	for k := 1; ; k++ {
		ns := env.Namespace(t)
		create(t, ns, "cache")
		ctx, stop := context.WithCancel(t.Context())
		stopped, writes := false, 0
		c := productClient(t, func(n int, r *http.Request) {
			if stopped && r.Method != http.MethodGet {
				writes++
			}
			if n == k {
				stopped = true
				stop()
			}
		})
		f, err := reconcile.Run(ctx, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})
		stop()
		if !stopped {
			break
		}
		if err != nil || !f.Interrupted || writes > 0 {
			t.Errorf("stopped at request %d: %d writes afterwards, interrupted %t, %v", k, writes, f.Interrupted, err)
		}
		wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	}
}
