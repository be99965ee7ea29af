package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
)

// stretch is how long the API server refuses everything. A minute is no other
// than this: it is longer than client-go's own ten tries, a second each, after
// which a request has failed unless the program waits on.
const stretch = 15 * time.Second

// inFlight is how many requests a pass has under way at most: one for each of its
// workers, and of its five lists a page each.
const inFlight = 10 + 5

// A fleet of 2,000 in the middle of which the API server answers 429 for a
// while, with Retry-After: each request that is under way asks again once in that
// time, and no other is begun. Nothing fails. When it is over, all of the fleet is
// done. The caches are suspended: one write and one Event each, so that the
// test does not take longer than the rest of them together.
func TestAFleetWaitsForABusyServer(t *testing.T) {
	t.Parallel() // it mostly waits
	w := fleetOf(t, 2000)
	busy := &busyServer{after: 600, lasts: stretch}
	proxy := w.Proxy(busy.fault)
	out, err := exec.Command(world.Program(t), "reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", w.NS, "--concurrency", "10").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 failed; 2000 caches: 2000 settled") || !strings.Contains(string(out), "has too much to do and asks to wait") {
		t.Errorf("%v\n%s", err, tail(out))
	}
	refused, most := int(busy.refused.Load()), inFlight*(int(stretch/time.Second)+1)
	t.Logf("%d requests refused, %d in all", refused, proxy.Requests())
	if refused < inFlight/2 || refused > most {
		t.Errorf("%d requests were refused, want some and at most %d", refused, most)
	}
}

// When it lasts longer than --timeout, that is the end: with the status of a
// wait that ended too early, and the reason.
func TestABusyServerAndTimeout(t *testing.T) {
	t.Parallel()
	w := fleetOf(t, 200)
	program := world.Program(t)
	for name, after := range map[string]int{"in the middle": 40, "at the first list": 1} {
		busy := &busyServer{after: after, lasts: time.Hour}
		proxy := w.Proxy(busy.fault)
		run := exec.Command(program, "reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", w.NS, "--wait", "--timeout", "10s")
		start := time.Now()
		out, _ := run.CombinedOutput()
		t.Logf("%s: %s", name, time.Since(start).Round(time.Second))
		if exit := run.ProcessState.ExitCode(); exit != 4 || !strings.Contains(string(out), "Timed out: --timeout ended before everything settled.") ||
			!strings.Contains(string(out), "too many requests") || strings.Contains(string(out), "No ClusteredCaches found") {
			t.Errorf("%s: exit status %d\n%s", name, exit, tail(out))
		}
	}
}

// An API server that refuses everything for minutes ends the pass, after as many
// requests as seconds for each that is under way: not one failure for each
// cache, hours later. (Time in here is not real, and neither is the server: all
// it would say is no.) With --linger it ends when that does, also with no
// answer at all: the CronJob's pods are not left for longer.
func TestServerThatStaysBusy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		linger, most time.Duration
		lists        bool // are answered
	}{
		{0, 3 * time.Minute, true},
		{time.Minute, time.Minute, true},
		{time.Minute, time.Minute, false},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) { staysBusy(t, tc.linger, tc.most, tc.lists) })
	}
}

func staysBusy(t *testing.T, linger, most time.Duration, lists bool) {
	fleet := newCopies(world.Shared(t), 100)
	fleet.change("clusteredcaches", `"size":3`, `"size":4`) // so that each has something to do
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		config := &rest.Config{Host: "http://busy", QPS: -1, Timeout: kube.RequestTimeout, Transport: &world.Standing{Do: func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
			if lists && !strings.Contains(r.URL.Path, "/namespaces/") {
				list := httptest.NewRecorder()
				fleet.ServeHTTP(list, r)
				return list.Result(), nil
			}
			requests.Add(1)
			return world.Answer(r, http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "1")
		}}}
		c, err := kube.NewClient(&kube.Target{Config: config}, nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		o := reconcile.Options{Concurrency: 10}
		if linger > 0 {
			o.LingerUntil = start.Add(linger - 20*time.Millisecond) // the process is older
		}
		f, err := reconcile.Run(context.Background(), c, o)
		took := time.Since(start)
		if !errors.Is(err, apply.ErrThrottled) {
			t.Errorf("the run ended with %v", err)
		}
		if n := int(requests.Load()); took > most || n > 10*(int(took/time.Second)+1) {
			t.Errorf("%d requests in %s, %d caches in the report", n, took, len(f.Caches))
		}
		if said := kube.Explain(err, &kube.Target{Server: "https://s", Identity: "u"}); !strings.Contains(said, "https://s has too much to do (429)") {
			t.Error(said)
		}
	})
}

// Events that admission has had enough of are left out, and nothing waits for
// them.
func TestEventsBeyondTheRate(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {suspend: true}`) // one Event
	var refused atomic.Int32
	c := w.Behind(func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			refused.Add(1)
			return world.Answer(r, http.StatusTooManyRequests, "TooManyRequests") // EventRateLimit names no time to wait
		}
		return send()
	})
	f := w.Run(c, reconcile.Options{Events: true})
	f.Wants(model.Settled, v1.ReasonSuspended)
	if n := refused.Load(); n != 1 {
		t.Errorf("%d tries to write an Event, want one", n)
	}
}

// fleetOf is a namespace with that many suspended caches.
func fleetOf(t *testing.T, size int) *world.World {
	t.Helper()
	w := world.Frozen(t)
	var keys []client.ObjectKey
	for i := range size {
		keys = append(keys, client.ObjectKey{Namespace: w.NS, Name: fmt.Sprintf("cache-%04d", i)})
	}
	w.InParallel(keys, func(key client.ObjectKey) error {
		return w.Env.Client.Create(w.Context(), &v1.ClusteredCache{ObjectMeta: w.Meta(key.Name), Spec: v1.ClusteredCacheSpec{Version: "1", Suspend: true}})
	})
	return w
}

// busyServer refuses every request for a while, from the one after so many on.
type busyServer struct {
	after   int
	lasts   time.Duration
	begin   sync.Once
	end     time.Time
	refused atomic.Int32
}

func (b *busyServer) fault(n int, _ *http.Request) faults.Fault {
	if n < b.after {
		return faults.Fault{}
	}
	b.begin.Do(func() { b.end = time.Now().Add(b.lasts) })
	if time.Now().After(b.end) {
		return faults.Fault{}
	}
	b.refused.Add(1)
	return faults.Fault{Answer: http.StatusTooManyRequests, RetryAfter: 1}
}

// tail is the end of what a program wrote.
func tail(out []byte) string { return string(out[max(0, len(out)-4000):]) }
