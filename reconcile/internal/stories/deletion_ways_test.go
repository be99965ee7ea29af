package stories_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/resources"
)

// Foreground: the garbage collector takes the nodes at once, and would take
// Jobs. Hooks wait for it, and run without nodes, which is said.
func TestForegroundDeletion(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood, imageHanging), func(c *v1.ClusteredCache) { c.Spec.Deletion.DrainSeconds = 3600 })
	settle(t, ns)
	// A node that does not go at once, so that a pass sees the collector at work.
	node := get(t, ns, "cache-0", &corev1.Pod{})
	patch(t, node, `{"metadata":{"finalizers":["test.example.com/slow"]}}`)
	jobs := logJobs(t, ns)
	c := remove(t, ns, "cache", client.PropagationPolicy(metav1.DeletePropagationForeground))
	for range 2 {
		wantVerdict(t, pass(t, ns), "cache", model.Progressing, v1.ReasonForegroundDeletion)
	}
	if r := condition(get(t, ns, "cache", &v1.ClusteredCache{}), v1.ConditionReconciling); r.Reason != v1.ReasonForegroundDeletion {
		t.Errorf("Reconciling: %+v", r)
	}
	wantJobs(t, jobs, c)
	testenv.Eventually(t, "the node is being deleted", func() bool { return get(t, ns, "cache-0", node).DeletionTimestamp != nil })
	patch(t, node, `{"metadata":{"finalizers":null}}`)
	testenv.Eventually(t, "the second hook runs without nodes", func() bool {
		v := verdict(t, pass(t, ns), "cache")
		return v.Reason == v1.ReasonRunningHook && strings.Contains(v.Message, "hook b") && strings.Contains(v.Message, "without nodes")
	})
	gone(t, ns, "cache", &appsv1.StatefulSet{})
	wantJobs(t, jobs, c, "a", "b")
	update(t, c, func(c *v1.ClusteredCache) { c.Annotations = map[string]string{v1.SkipHooksAnnotation: "b"} })
	settle(t, ns)
	gone(t, ns, "cache", &v1.ClusteredCache{})
}

// Without hooks there is nothing to wait for: the cache goes when the garbage
// collector is done.
func TestForegroundDeletionWithoutHooks(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Deletion = &v1.DeletionSpec{DrainSeconds: 3600} })
	settle(t, ns)
	remove(t, ns, "cache", client.PropagationPolicy(metav1.DeletePropagationForeground))
	wantVerdict(t, pass(t, ns), "cache", model.Settled, v1.ReasonFinalized)
	testenv.Eventually(t, "the cache is collected", func() bool { return isGone(t, ns, "cache", &v1.ClusteredCache{}) })
}

// Orphan: the children stay as they are, and no hook runs.
// The garbage collector mostly is done, its finalizer gone, before a pass comes.
func TestOrphaningDeletion(t *testing.T) {
	t.Parallel()
	t.Run("before the garbage collector", func(t *testing.T) { orphan(t, "before") })
	t.Run("after it", func(t *testing.T) { orphan(t, "after") })
}

func orphan(t *testing.T, when string) {
	t.Helper()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood), func(c *v1.ClusteredCache) { c.Spec.Deletion.DrainSeconds = 3600 })
	settle(t, ns)
	jobs := logJobs(t, ns)
	c := remove(t, ns, "cache", client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if when == "after" {
		testenv.Eventually(t, "the garbage collector is done", func() bool { return len(finalizers(t, ns, "cache")) == 1 })
	}
	f := pass(t, ns)
	wantVerdict(t, f, "cache", model.Settled, v1.ReasonFinalized)
	if m := verdict(t, f, "cache").Message; !strings.Contains(m, "its children stay, without an owner") || !strings.Contains(m, "no hook was run") {
		t.Error(m)
	}
	testenv.Eventually(t, "the cache is gone", func() bool { return isGone(t, ns, "cache", &v1.ClusteredCache{}) })
	for _, o := range []client.Object{&appsv1.StatefulSet{}, &corev1.Service{}} {
		testenv.Eventually(t, "the children have no owner", func() bool { return len(get(t, ns, "cache", o).GetOwnerReferences()) == 0 })
	}
	wantJobs(t, jobs, c)
}

// A namespace that is being deleted takes no new Jobs: no hook is run, which is
// said, and nothing hangs.
func TestDeletionOfTheNamespace(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood), func(c *v1.ClusteredCache) { c.Spec.Deletion.DrainSeconds = 3600 })
	settle(t, ns)
	keep := &corev1.ConfigMap{ObjectMeta: meta(ns, "keep")}
	keep.Finalizers = []string{"test.example.com/keep"}
	mustCreate(t, keep)
	deleteNamespace(t, ns)
	testenv.Eventually(t, "the cache is being deleted", func() bool {
		return get(t, ns, "cache", &v1.ClusteredCache{}).DeletionTimestamp != nil
	})
	f := pass(t, ns)
	wantVerdict(t, f, "cache", model.Settled, v1.ReasonNamespaceTerminating)
	if m := verdict(t, f, "cache").Message; !strings.Contains(m, "no hook was run: namespace "+ns+" is being deleted") {
		t.Error(m)
	}
	gone(t, ns, "cache", &v1.ClusteredCache{})
	patch(t, keep, `{"metadata":{"finalizers":null}}`)
}

func deleteNamespace(t *testing.T, ns string) {
	t.Helper()
	if err := env.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: meta("", ns)}); err != nil {
		t.Fatal(err)
	}
}

// The namespace is deleted between our look at it and the Job: the refusal is
// understood, in the same pass.
func TestNamespaceIsDeletedBeforeTheHook(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withHooks(imageGood))
	settle(t, ns)
	remove(t, ns, "cache")
	keep := &corev1.ConfigMap{ObjectMeta: meta(ns, "keep")}
	keep.Finalizers = []string{"test.example.com/keep"}
	mustCreate(t, keep)
	refused := false
	f := runWith(t, productClient(t, func(_ int, r *http.Request) {
		if !refused && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/jobs/"+resources.HookJobName(c, "a")) {
			refused = true
			deleteNamespace(t, ns)
		}
	}), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})
	wantVerdict(t, f, "cache", model.Settled, v1.ReasonNamespaceTerminating)
	if !refused {
		t.Error("no Job was tried: the test does not test")
	}
	patch(t, keep, `{"metadata":{"finalizers":null}}`)
}

// Whoever else has put our finalizer on the cache, and whoever else has one of
// their own there: the drain is recorded, ours goes, theirs stay where they are.
func TestFinalizersOfOthers(t *testing.T) {
	t.Parallel()
	for _, who := range []struct {
		name    string
		prepare func(t *testing.T, c *v1.ClusteredCache)
	}{
		{"ours is theirs too", func(*testing.T, *v1.ClusteredCache) {}},
		{"nobody knows whose", func(t *testing.T, c *v1.ClusteredCache) { patch(t, c, `{"metadata":{"managedFields":[{}]}}`) }},
	} {
		t.Run(who.name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			c := create(t, ns, "cache", withHooks(imageGood), func(c *v1.ClusteredCache) {
				c.Finalizers = []string{"other.example.com/x", v1.Finalizer, "other.example.com/y"}
				c.Spec.Deletion.DrainSeconds = 1
			})
			settle(t, ns)
			jobs := logJobs(t, ns)
			remove(t, ns, "cache")
			who.prepare(t, get(t, ns, "cache", c))
			wantVerdict(t, pass(t, ns), "cache", model.Progressing, v1.ReasonDraining)
			if d := cmpDiff([]string{"other.example.com/x", v1.Finalizer, "other.example.com/y"}, finalizers(t, ns, "cache")); d != "" {
				t.Errorf("while draining: %s", d)
			}
			wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonFinalized)
			if d := cmpDiff([]string{"other.example.com/x", "other.example.com/y"}, finalizers(t, ns, "cache")); d != "" {
				t.Error(d)
			}
			wantJobs(t, jobs, c, "a")
			patch(t, get(t, ns, "cache", c), `{"metadata":{"finalizers":null}}`)
		})
	}
}

// Somebody writes to the cache, takes a finalizer off, or lets go of the cache
// altogether, right before we do: our removal is tried again, and no hook is.
func TestConflictOnRelease(t *testing.T) {
	t.Parallel()
	for _, meanwhile := range []struct{ name, patch string }{
		{"another writer", `{"metadata":{"annotations":{"team":"x"}}}`},
		{"another finalizer goes", `{"metadata":{"finalizers":["` + v1.Finalizer + `"]}}`},
		{"gone", `{"metadata":{"finalizers":null}}`},
	} {
		t.Run(meanwhile.name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			c := create(t, ns, "cache", withHooks(imageGood, imageGood), func(c *v1.ClusteredCache) { c.Finalizers = []string{"other.example.com/x"} })
			settle(t, ns)
			jobs := logJobs(t, ns)
			remove(t, ns, "cache")
			releases := 0
			f := runWith(t, productClient(t, func(_ int, r *http.Request) {
				if strings.HasPrefix(r.Header.Get("Content-Type"), "application/merge-patch") {
					if releases++; releases == 1 {
						patch(t, get(t, ns, "cache", &v1.ClusteredCache{}), meanwhile.patch)
					}
				}
			}), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Wait: true})
			if v := verdict(t, f, "cache"); v.State != model.Settled || releases == 0 {
				t.Errorf("%+v after %d releases", v, releases)
			}
			wantJobs(t, jobs, c, "a", "b")
			if !isGone(t, ns, "cache", c) {
				if left := finalizers(t, ns, "cache"); slices.Contains(left, v1.Finalizer) {
					t.Errorf("finalizers: %v", left)
				}
				patch(t, get(t, ns, "cache", c), `{"metadata":{"finalizers":null}}`)
			}
		})
	}
}

// The look at the clients' Service is answered with 200, 404, 403 and 500: the
// first two go on, the others stop the deletion and are told.
func TestAnswersAboutTheClientService(t *testing.T) {
	t.Parallel()
	for _, answer := range []int{http.StatusOK, http.StatusNotFound, http.StatusForbidden, http.StatusInternalServerError} {
		t.Run(http.StatusText(answer), func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			c := create(t, ns, "cache", withHooks(imageGood))
			settle(t, ns)
			if answer == http.StatusNotFound {
				if err := env.Client.Delete(t.Context(), get(t, ns, "cache", &corev1.Service{})); err != nil {
					t.Fatal(err)
				}
			}
			remove(t, ns, "cache")
			jobs := logJobs(t, ns)
			var asked atomic.Int64
			proxy := faults.Start(t, env.Config, func(_ int, r *http.Request) faults.Fault {
				if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/services/cache") {
					return faults.Fault{}
				}
				asked.Add(1)
				if answer == http.StatusForbidden || answer == http.StatusInternalServerError {
					return faults.Fault{Answer: answer}
				}
				return faults.Fault{}
			})
			c2, err := kube.NewClient(&kube.Target{Config: proxy.Config}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = reconcile.Run(t.Context(), c2, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}, Names: []string{"cache"}}, Concurrency: 1, Wait: true})
			if asked.Load() == 0 {
				t.Fatal("nobody asked: the test does not test")
			}
			if answer == http.StatusOK || answer == http.StatusNotFound {
				if err != nil {
					t.Error(err)
				}
				gone(t, ns, "cache", &v1.ClusteredCache{})
				wantJobs(t, jobs, c, "a")
				return
			}
			if err == nil || !strings.Contains(err.Error(), "Service "+ns+"/cache") {
				t.Errorf("%d: %v", answer, err)
			}
			if !slices.Contains(finalizers(t, ns, "cache"), v1.Finalizer) {
				t.Error("let go of")
			}
			wantJobs(t, jobs, c)
		})
	}
}

// Two passes at the same moment make one Job for each hook, and both end well.
func TestTwoPassesOnOneDeletion(t *testing.T) {
	t.Parallel()
	for range 2 {
		ns := env.Namespace(t)
		create(t, ns, "cache", withHooks(imageGood, imageGood), func(c *v1.ClusteredCache) { c.Spec.Deletion.DrainSeconds = 1 })
		settle(t, ns)
		jobs := logJobs(t, ns)
		c := remove(t, ns, "cache")
		ended := make(chan model.Verdict, 2)
		for range 2 {
			go func() {
				f, err := reconcile.Run(t.Context(), productClient(t, nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Wait: true})
				if err != nil || len(f.Caches) != 1 {
					t.Errorf("%+v, %v", f, err)
					ended <- model.Verdict{}
					return
				}
				ended <- f.Caches[0].Verdict
			}()
		}
		for range 2 {
			if v := <-ended; v.State != model.Settled {
				t.Errorf("%+v", v)
			}
		}
		wantJobs(t, jobs, c, "a", "b")
		gone(t, ns, "cache", &v1.ClusteredCache{})
	}
}
