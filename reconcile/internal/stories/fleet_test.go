package stories_test

import (
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
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/observe"
)

// A pass holds some pages of each list in memory, whatever the size of the
// fleet, and however much a cache holds (here 20 KiB, then 100 KiB in an
// annotation).
func TestMemoryDoesNotGrowWithTheFleet(t *testing.T) {
	live := func(size, padding int) uint64 {
		c := newCopies(t, size)
		c.padding = strings.Repeat("x", padding)
		var heaps []uint64
		f := runWith(t, c.client(t), reconcile.Options{Concurrency: 4, Progress: func(p reconcile.Progress) {
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
	env := frozen(t)
	keys := namesThatBreakNaiveJoins()
	for _, ns := range []string{"x", "x-y", "xa"} {
		if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			t.Fatal(err)
		}
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	inParallel(t, keys, func(key client.ObjectKey) error {
		return env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: meta(key.Namespace, key.Name),
			Spec: v1.ClusteredCacheSpec{Size: 2, Version: "1.6.38"}})
	})
	passOn(t, env)
	inParallel(t, keys, func(key client.ObjectKey) error { return makeReady(t, env, key) })
	passOn(t, env) // writes the status

	var mu sync.Mutex
	requests := map[string]int{}
	c := clientOf(t, env, func(_ int, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("labelSelector")+" "+r.URL.Query().Get("continue")]++
	})
	f := runWith(t, c, reconcile.Options{Concurrency: 4})
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
	everyCacheIsInOneShard(t, env, keys)
}

// Each cache is done by one shard. (The children of all are listed by each.)
func everyCacheIsInOneShard(t *testing.T, env *testenv.Env, keys []client.ObjectKey) {
	t.Helper()
	inParallel(t, keys, func(key client.ObjectKey) error {
		return env.Client.Delete(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta(key.Namespace, key.Name)})
	})
	done := map[string]int{}
	for i := range 3 {
		f := runWith(t, clientOf(t, env, nil), reconcile.Options{Scope: observe.Scope{Shard: observe.Shard{Index: i, Count: 3}}, Concurrency: 4})
		if f.Total != len(f.Caches) || f.Total == 0 {
			t.Errorf("shard %d: %d caches, %d reports", i, f.Total, len(f.Caches))
		}
		for _, r := range f.Caches {
			done[r.Namespace+"/"+r.Name]++
		}
	}
	for _, key := range keys {
		if done[key.Namespace+"/"+key.Name] != 1 {
			t.Errorf("%s was done %d times", key, done[key.Namespace+"/"+key.Name])
		}
	}
}

// makeReady says in the status of a StatefulSet what its controller would.
func makeReady(t *testing.T, env *testenv.Env, key client.ObjectKey) error {
	sts := &appsv1.StatefulSet{}
	if err := env.Client.Get(t.Context(), key, sts); err != nil {
		return err
	}
	n := *sts.Spec.Replicas
	sts.Status = appsv1.StatefulSetStatus{ObservedGeneration: sts.Generation, Replicas: n, ReadyReplicas: n,
		AvailableReplicas: n, UpdatedReplicas: n, CurrentReplicas: n, CurrentRevision: "r-1", UpdateRevision: "r-1"}
	return env.Client.Status().Update(t.Context(), sts)
}

func inParallel(t *testing.T, keys []client.ObjectKey, do func(client.ObjectKey) error) {
	t.Helper()
	work := make(chan client.ObjectKey)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for key := range work {
				if err := do(key); err != nil {
					t.Error(key, err)
				}
			}
		})
	}
	for _, key := range keys {
		work <- key
	}
	close(work)
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
