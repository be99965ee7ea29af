package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/observe"
)

// A pass holds some pages of each list in memory, whatever the size of the
// fleet, and however much a cache holds (here 20 KiB, then 100 KiB in an
// annotation).
func TestMemoryDoesNotGrowWithTheFleet(t *testing.T) {
	w := world.Shared(t) // not at the same time as others: they use memory too
	live := func(size, padding int) uint64 {
		c := newCopies(w.Fresh(t), size)
		c.padding = strings.Repeat("x", padding)
		var heaps []uint64
		f := world.Everywhere(t, c.client(t), reconcile.Options{Concurrency: 4, Progress: func(p reconcile.Progress) {
			if p.Done%(size/20) == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				heaps = append(heaps, m.HeapAlloc)
			}
		}})
		if f.Total != size || len(f.Caches) != 0 || len(c.wrong) > 0 {
			t.Fatalf("%d of %d caches, reports %+v, requests %v", f.Total, size, f.Caches, c.wrong)
		}
		slices.Sort(heaps)
		median := heaps[len(heaps)/2]
		t.Logf("%d caches: %.1f MiB live, pages %v", size, float64(median)/(1<<20), c.pages)
		return median
	}
	small, large, heavy := live(1000, 0), live(10_000, 0), live(1000, 100<<10)
	if large > small*3/2 {
		t.Errorf("%d bytes with 1,000 caches, %d with 10,000", small, large)
	}
	// Pages have a least number of objects, so heavy caches take more; not 50 times more.
	if heavy > small+40<<20 {
		t.Errorf("%d bytes with small caches, %d with caches of 100 KiB", small, heavy)
	}
}

// Names and namespaces whose order differs by what one compares: "x-y/" sorts
// before "x/", and "cache-0000" stands between "cache" and others.
func namesThatBreakNaiveJoins() []client.ObjectKey {
	var keys []client.ObjectKey
	for _, ns := range []string{"x", "x-y", "xa"} {
		keys = append(keys, client.ObjectKey{Namespace: ns, Name: "cache"})
		for i := range 70 {
			keys = append(keys, client.ObjectKey{Namespace: ns, Name: fmt.Sprintf("cache-%04d", i)})
		}
	}
	return keys
}

// A converged pass over several namespaces and pages sends the lists' requests,
// each once, and nothing else; every cache finds its children. The children are
// made in another order than the caches.
func TestAConvergedFleetCostsItsPages(t *testing.T) {
	t.Parallel()
	// A control plane of its own: the fleet is all caches that there are.
	w := world.Separate(t, "--controller-manager=false")
	keys := namesThatBreakNaiveJoins()
	for _, ns := range []string{"x", "x-y", "xa"} {
		w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	w.InParallel(keys, func(key client.ObjectKey) error {
		return w.Env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec: v1.ClusteredCacheSpec{Size: 2, Version: "1.6.38"}})
	})
	everywhere := func() { world.Everywhere(t, w.Product(nil), reconcile.Options{Concurrency: 4}) }
	everywhere()
	w.InParallel(keys, func(key client.ObjectKey) error { return makeReady(w, key) })
	everywhere() // writes the status

	var mu sync.Mutex
	requests := map[string]int{}
	c := w.Product(func(_ int, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("labelSelector")+" "+r.URL.Query().Get("continue")]++
	})
	f := world.Everywhere(t, c, reconcile.Options{Concurrency: 4})
	if f.Total != len(keys) || len(f.Caches) != 0 {
		t.Errorf("%d caches, reports %+v", f.Total, f.Caches)
	}
	pages := map[string]int{}
	for _, request := range slices.Sorted(maps.Keys(requests)) {
		parts := strings.Split(request, " ")
		if requests[request] != 1 {
			t.Errorf("%d times: %s", requests[request], request)
		}
		pages[parts[1]+" "+parts[2]]++
	}
	if len(pages) != 5 {
		t.Errorf("requests: %v", slices.Sorted(maps.Keys(requests)))
	}
	for list, n := range pages {
		if n < 2 || !strings.HasPrefix(list, "/api") {
			t.Errorf("%d pages of %s, want several", n, list)
		}
	}
	t.Logf("pages: %v", pages)
	everyCacheIsInOneShard(w, keys)
}

// Each cache is done by one shard. (The children of all are listed by each.)
func everyCacheIsInOneShard(w *world.World, keys []client.ObjectKey) {
	w.Helper()
	w.InParallel(keys, func(key client.ObjectKey) error {
		return w.Env.Client.Delete(w.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	})
	done := map[string]int{}
	for i := range 3 {
		f := world.Everywhere(w.T, w.Product(nil), reconcile.Options{Scope: observe.Scope{Shard: observe.Shard{Index: i, Count: 3}}, Concurrency: 4})
		if f.Total != len(f.Caches) || f.Total == 0 {
			w.Errorf("shard %d: %d caches, %d reports", i, f.Total, len(f.Caches))
		}
		for _, r := range f.Caches {
			done[r.Namespace+"/"+r.Name]++
		}
	}
	for _, key := range keys {
		if done[key.Namespace+"/"+key.Name] != 1 {
			w.Errorf("%s was done %d times", key, done[key.Namespace+"/"+key.Name])
		}
	}
}

// makeReady says in the status of a StatefulSet what its controller would.
func makeReady(w *world.World, key client.ObjectKey) error {
	sts := &appsv1.StatefulSet{}
	if err := w.Env.Client.Get(w.Context(), key, sts); err != nil {
		return err
	}
	n := *sts.Spec.Replicas
	sts.Status = appsv1.StatefulSetStatus{ObservedGeneration: sts.Generation, Replicas: n, ReadyReplicas: n,
		AvailableReplicas: n, UpdatedReplicas: n, CurrentReplicas: n, CurrentRevision: "r-1", UpdateRevision: "r-1"}
	return w.Env.Client.Status().Update(w.Context(), sts)
}
