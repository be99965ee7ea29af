package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/report"
)

// point is one try: this fault at the k-th request of the run that makes this
// story good.
type point struct {
	story story
	fault blow
	k     int
}

func (p point) String() string { return fmt.Sprintf("%s/%s/%d", p.story.name, p.fault.name, p.k) }

// norm is what an undisturbed run of a story makes of it, and needs.
type norm struct {
	state    map[string]string
	requests int
	exit     int
}

// The program is hit by every fault at every request of every story. Whatever
// the run was, its exit status is a documented one and true, and passes without
// faults then make of the cluster what an undisturbed run makes of it.
//
// CRASH_POINTS is the number of points, drawn at random, or all; CRASH_SEED
// draws the same again.
func TestCrashMatrix(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("CRASH_SEED"), 10, 64); err == nil {
		seed = s
	}
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("CRASH_SEED=%d", seed)
	number, all := 14, os.Getenv("CRASH_POINTS") == "all"
	if n, err := strconv.Atoi(os.Getenv("CRASH_POINTS")); err == nil {
		number = n
	}
	told := stories()
	if !all && number < 100 {
		// Each needs a run of its own to compare with.
		random.Shuffle(len(told), func(i, j int) { told[i], told[j] = told[j], told[i] })
		told = told[:4]
	}
	m := &matrix{program: world.Program(t), norms: map[string]norm{}, tried: map[string]int{}, failed: map[string]int{}}
	inTests(t, told, func(t *testing.T, s story) { m.undisturbed(world.Shared(t), s) })
	var points []point
	for _, s := range told {
		for _, b := range blows() {
			for k := 1; k <= m.norms[s.name].requests; k++ {
				points = append(points, point{s, b, k})
			}
		}
	}
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	if !all && number < len(points) {
		points = points[:number]
	}
	inTests(t, points, func(t *testing.T, p point) { m.try(world.Shared(t), p) })
	t.Log("\n" + m.table())
}

// inTests runs each in a test of its own, a few at the same time.
func inTests[T any](t *testing.T, list []T, f func(*testing.T, T)) {
	t.Helper()
	todo := make(chan T, len(list))
	for _, item := range list {
		todo <- item
	}
	close(todo)
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for item := range todo {
				name := fmt.Sprint(item)
				if s, ok := any(item).(story); ok {
					name = s.name
				}
				t.Run(name, func(t *testing.T) { f(t, item) })
			}
		})
	}
	workers.Wait()
}

type matrix struct {
	program string

	mu            sync.Mutex
	norms         map[string]norm
	tried, failed map[string]int // by story and fault
}

// undisturbed makes the norm of a story.
func (m *matrix) undisturbed(w *world.World, s story) {
	r := m.run(w, point{story: s})
	if r.exit != 0 {
		w.Fatalf("exit status %d without a fault:\n%s", r.exit, r.output)
	}
	w.Settle()
	n := norm{exit: r.exit, state: map[string]string{}}
	// Until the controllers have come to rest.
	for rest := 0; rest < 3; time.Sleep(500 * time.Millisecond) {
		now := state(w, r.nodes)
		if rest++; differences(n.state, now) != "" {
			rest = 0
		}
		n.state = now
	}
	n.requests = len(r.requests)
	m.mu.Lock()
	m.norms[s.name] = n
	m.mu.Unlock()
}

// try is one point.
func (m *matrix) try(w *world.World, p point) {
	r := m.run(w, p)
	if len(r.requests) < p.k {
		return // this run needed fewer
	}
	defer func() { m.count(p, w.Failed()) }()
	hit := r.requests[p.k-1]
	want := m.norms[p.story.name]
	if !p.fault.ends(hit, r.exit) && (r.exit != want.exit || !p.fault.ends(hit, 0)) {
		w.Errorf("exit status %d after the fault at %s:\n%s", r.exit, hit, r.output)
	}
	if r.exit == 0 {
		wantDone(w, p.story, r)
	}
	w.Settle()
	select {
	case <-r.arrived:
	case <-time.After(time.Minute):
		w.Error("the request never arrived")
	}
	if p.fault.name == late {
		// It may have come after the last of those passes: an old status over a
		// newer one is for the next to mend.
		w.Settle()
	}
	var d string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		if d = differences(want.state, state(w, r.nodes)); d == "" {
			break
		}
	}
	if d != "" {
		w.Errorf("the fault at %s (exit status %d) is not made good:\n%s\n%s", hit, r.exit, d, r.output)
	}
	if len(p.story.hooks) > 0 {
		r.jobs.Wants(r.cache, p.story.hooks...)
	}
}

// wantDone holds the exit status 0 to what it says.
func wantDone(w *world.World, s story, r *hitRun) {
	w.Helper()
	c := client.NewDryRunClient(w.Product(nil))
	f := w.Run(c, reconcile.Options{Concurrency: 1})
	if sum := report.Summarize(f.Fleet); sum.Writes > 0 || s.wait && sum.Caches.Progressing > 0 {
		w.Errorf("exit status 0, and not done: %+v\n%s", sum, r.output)
	}
}

func (m *matrix) count(p point, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := p.story.name + "/" + p.fault.name
	m.tried[key]++
	if failed {
		m.failed[key]++
	}
}

// table are the points tried, by story and fault, with failures.
func (m *matrix) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s", "points tried (failures)")
	for _, s := range stories() {
		fmt.Fprintf(&b, " %14s", s.name)
	}
	all, failures := 0, 0
	for _, f := range blows() {
		fmt.Fprintf(&b, "\n%-26s", f.name)
		for _, s := range stories() {
			key := s.name + "/" + f.name
			cell := strconv.Itoa(m.tried[key])
			if n := m.failed[key]; n > 0 {
				cell += fmt.Sprintf(" (%d)", n)
			}
			all, failures = all+m.tried[key], failures+m.failed[key]
			fmt.Fprintf(&b, " %14s", cell)
		}
	}
	fmt.Fprintf(&b, "\n%d points, %d failures\n", all, failures)
	return b.String()
}
