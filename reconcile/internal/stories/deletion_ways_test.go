package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

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
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/resources"
)

// Foreground: the garbage collector takes the nodes at once, and would take
// Jobs. Hooks wait for it, and run without nodes, which is said.
func TestForegroundDeletion(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Hooks(world.HookGood, world.HookHanging), `spec: {deletion: {drainSeconds: 3600}}`)
	w.Settle()
	// A node that does not go at once, so that a pass sees the collector at work.
	node := w.Node(0)
	w.Patch(node, `{"metadata":{"finalizers":["test.example.com/slow"]}}`)
	jobs := w.LogJobs()
	c := w.Remove(client.PropagationPolicy(metav1.DeletePropagationForeground))
	for range 2 {
		w.Pass().Wants(model.Progressing, v1.ReasonForegroundDeletion)
	}
	if r := w.Condition(v1.ConditionReconciling); r.Reason != v1.ReasonForegroundDeletion {
		t.Errorf("Reconciling: %+v", r)
	}
	jobs.Wants(c)
	w.Eventually("the node is being deleted", func() bool { return world.Get(w, "cache-0", node).DeletionTimestamp != nil })
	w.Patch(node, `{"metadata":{"finalizers":null}}`)
	w.Eventually("the second hook runs without nodes", func() bool {
		v := w.Pass().Verdict()
		return v.Reason == v1.ReasonRunningHook && strings.Contains(v.Message, "hook b") && strings.Contains(v.Message, "without nodes")
	})
	w.Gone(&appsv1.StatefulSet{})
	jobs.Wants(c, "a", "b")
	w.Edit(`metadata: {annotations: {cache.example.com/skip-hooks: b}}`)
	w.Settle()
	w.Gone(&v1.ClusteredCache{})
}

// Without hooks there is nothing to wait for: the cache goes when the garbage
// collector is done.
func TestForegroundDeletionWithoutHooks(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {deletion: {drainSeconds: 3600}}`)
	w.Settle()
	w.Remove(client.PropagationPolicy(metav1.DeletePropagationForeground))
	w.Pass().Wants(model.Settled, v1.ReasonFinalized)
	w.Eventually("the cache is collected", func() bool { return w.CacheIsGone() })
}

// Orphan: the children stay as they are, and no hook runs.
// The garbage collector mostly is done, its finalizer gone, before a pass comes.
func TestOrphaningDeletion(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"before the garbage collector": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orphan(world.Shared(t), waits)
		})
	}
}

func orphan(w *world.World, waits bool) {
	w.Helper()
	w.Cache(world.Hooks(world.HookGood), `spec: {deletion: {drainSeconds: 3600}}`)
	w.Settle()
	jobs := w.LogJobs()
	c := w.Remove(client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if waits {
		w.Eventually("the garbage collector is done", func() bool { return len(w.Stored().Finalizers) == 1 })
	}
	w.Pass().Wants(model.Settled, v1.ReasonFinalized).Says("its children stay, without an owner", "no hook was run")
	w.Eventually("the cache is gone", func() bool { return w.CacheIsGone() })
	for _, o := range []client.Object{&appsv1.StatefulSet{}, &corev1.Service{}} {
		w.Eventually("the children have no owner", func() bool { return len(world.Get(w, "cache", o).GetOwnerReferences()) == 0 })
	}
	jobs.Wants(c)
}

// A namespace that is being deleted takes no new Jobs: no hook is run, which is
// said, and nothing hangs.
func TestDeletionOfTheNamespace(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Hooks(world.HookGood), `spec: {deletion: {drainSeconds: 3600}}`)
	w.Settle()
	w.Keep()
	w.DeleteNamespace()
	w.Eventually("the cache is being deleted", func() bool {
		return w.Stored().DeletionTimestamp != nil
	})
	f := w.Pass()
	f.Wants(model.Settled, v1.ReasonNamespaceTerminating)
	if m := f.Verdict().Message; !strings.Contains(m, "no hook was run: namespace "+w.NS+" is being deleted") {
		t.Error(m)
	}
	w.Gone(&v1.ClusteredCache{})
}

// The namespace is deleted between our look at it and the Job: the refusal is
// understood, in the same pass.
func TestNamespaceIsDeletedBeforeTheHook(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	c := w.Cache(world.Hooks(world.HookGood))
	w.Settle()
	w.Remove()
	w.Keep()
	refused := false
	f := w.Run(w.Product(func(_ int, r *http.Request) {
		if !refused && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/jobs/"+resources.HookJobName(c, "a")) {
			refused = true
			w.DeleteNamespace()
		}
	}), reconcile.Options{Concurrency: 1})
	f.Wants(model.Settled, v1.ReasonNamespaceTerminating)
	if !refused {
		t.Error("no Job was tried: the test does not test")
	}
}

// amongOthers is a cache on which others have finalizers, before and after ours.
const amongOthers = "metadata: {finalizers: [other.example.com/x, " + v1.Finalizer + ", other.example.com/y]}"

// Whoever else has put our finalizer on the cache, and whoever else has one of
// their own there: the drain is recorded, ours goes, theirs stay where they are.
func TestFinalizersOfOthers(t *testing.T) {
	t.Parallel()
	for _, who := range []struct {
		name    string
		prepare func(w *world.World)
	}{
		{"ours is theirs too", func(*world.World) {}},
		{"nobody knows whose", func(w *world.World) { w.Patch(w.Stored(), `{"metadata":{"managedFields":[{}]}}`) }},
	} {
		t.Run(who.name, func(t *testing.T) {
			t.Parallel()
			w := world.Shared(t)
			c := w.Cache(world.Hooks(world.HookGood), `spec: {deletion: {drainSeconds: 1}}`, amongOthers)
			w.Settle()
			jobs := w.LogJobs()
			w.Remove()
			who.prepare(w)
			w.Pass().Wants(model.Progressing, v1.ReasonDraining)
			if d := cmp.Diff([]string{"other.example.com/x", v1.Finalizer, "other.example.com/y"}, w.Stored().Finalizers); d != "" {
				t.Errorf("while draining: %s", d)
			}
			w.Settle().Wants(model.Settled, v1.ReasonFinalized)
			if d := cmp.Diff([]string{"other.example.com/x", "other.example.com/y"}, w.Stored().Finalizers); d != "" {
				t.Error(d)
			}
			jobs.Wants(c, "a")
			w.Patch(world.Get(w, "cache", c), `{"metadata":{"finalizers":null}}`)
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
			w := world.Shared(t)
			c := w.Cache(world.Hooks(world.HookGood, world.HookGood), `metadata: {finalizers: ["other.example.com/x"]}`)
			w.Settle()
			jobs := w.LogJobs()
			w.Remove()
			releases := 0
			f := w.Run(w.Product(func(_ int, r *http.Request) {
				if strings.HasPrefix(r.Header.Get("Content-Type"), "application/merge-patch") {
					if releases++; releases == 1 {
						w.Patch(w.Stored(), meanwhile.patch)
					}
				}
			}), reconcile.Options{Concurrency: 1, Wait: true})
			if v := f.Verdict(); v.State != model.Settled || releases == 0 {
				t.Errorf("%+v after %d releases", v, releases)
			}
			jobs.Wants(c, "a", "b")
			if !w.IsGone("cache", c) {
				if left := w.Stored().Finalizers; slices.Contains(left, v1.Finalizer) {
					t.Errorf("finalizers: %v", left)
				}
				w.Patch(world.Get(w, "cache", c), `{"metadata":{"finalizers":null}}`)
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
			w := world.Shared(t)
			c := w.Cache(world.Hooks(world.HookGood))
			w.Settle()
			if answer == http.StatusNotFound {
				w.Delete(w.ClientService())
			}
			w.Remove()
			jobs := w.LogJobs()
			var asked atomic.Int64
			proxy := w.Proxy(func(_ int, r *http.Request) faults.Fault {
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
			_, err = reconcile.Run(t.Context(), c2, reconcile.Options{Scope: observe.Scope{Namespaces: []string{w.NS}, Names: []string{"cache"}}, Concurrency: 1, Wait: true})
			if asked.Load() == 0 {
				t.Fatal("nobody asked: the test does not test")
			}
			if answer == http.StatusOK || answer == http.StatusNotFound {
				if err != nil {
					t.Error(err)
				}
				w.Gone(&v1.ClusteredCache{})
				jobs.Wants(c, "a")
				return
			}
			if err == nil || !strings.Contains(err.Error(), "Service "+w.NS+"/cache") {
				t.Errorf("%d: %v", answer, err)
			}
			if !slices.Contains(w.Stored().Finalizers, v1.Finalizer) {
				t.Error("let go of")
			}
			jobs.Wants(c)
		})
	}
}

// Two passes at the same moment make one Job for each hook, and both end well.
func TestTwoPassesOnOneDeletion(t *testing.T) {
	t.Parallel()
	for range 2 {
		w := world.Shared(t)
		w.Cache(world.Hooks(world.HookGood, world.HookGood), `spec: {deletion: {drainSeconds: 1}}`)
		w.Settle()
		jobs := w.LogJobs()
		c := w.Remove()
		ended := make(chan model.Verdict, 2)
		for range 2 {
			go func() {
				f, err := reconcile.Run(t.Context(), w.Product(nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{w.NS}}, Concurrency: 1, Wait: true})
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
		jobs.Wants(c, "a", "b")
		w.Gone(&v1.ClusteredCache{})
	}
}
