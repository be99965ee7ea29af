package crash_test

import (
	"fmt"

	"example.com/clusteredcache/reconcile/internal/world"
	"example.com/clusteredcache/reconcile/kube"

	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/observe"
)

// looksAt matches the read with which a look at a cache begins.
var looksAt = regexp.MustCompile(`/clusteredcaches/[^/]+$`)

// behindFaults runs program through a proxy that spoils looks as fault says: the
// n-th of those at caches, counted from 1. It returns the exit status and what was
// written to both streams.
func behindFaults(w *world.World, fault func(n int, r *http.Request) faults.Fault, program string, args ...string) (int, string) {
	w.Helper()
	var looks atomic.Int32
	proxy := w.Proxy(func(_ int, r *http.Request) faults.Fault {
		if r.Method != http.MethodGet || !looksAt.MatchString(r.URL.Path) {
			return faults.Fault{}
		}
		return fault(int(looks.Add(1)), r)
	})
	run := exec.Command(program, append(args, "--kubeconfig", proxy.Kubeconfig)...)
	out, _ := run.CombinedOutput()
	return run.ProcessState.ExitCode(), string(out)
}

// Waiting outlives reads that fail, however they do: it goes on, says so, and
// ends well when the cache has settled.
func TestWaitingOutlivesFailedReads(t *testing.T) {
	t.Parallel()
	program := world.Program(t)
	for _, command := range []string{"reconcile --wait", "reconcile --linger 1m", "status --wait"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			w := world.Shared(t)
			w.Cache(world.Crashing)
			w.Pass()
			failing := []faults.Fault{
				{Answer: http.StatusInternalServerError}, {Answer: http.StatusServiceUnavailable}, {Lose: true}, {Drop: true}, {Cut: true},
				{Answer: http.StatusInternalServerError},
			}
			exit, out := behindFaults(w, func(n int, _ *http.Request) faults.Fault {
				switch {
				case n <= len(failing):
					return failing[n-1]
				case n == len(failing)+1:
					w.Edit(`spec: {version: "1"}`)
					if strings.HasPrefix(command, "status") {
						w.Pass()
					}
				}
				return faults.Fault{}
			}, program, append(strings.Fields(command), "-n", w.NS)...)
			if exit != 0 || !strings.Contains(out, "1 settled") || strings.Count(out, "could not be read; it is tried again") < 2 {
				t.Errorf("exit status %d\n%s", exit, out)
			}
		})
	}
}

// When reads fail to the end, the end is that of any wait: with the last error
// for the reason. What a repetition does not mend ends it at once.
func TestWaitingEndsWithTheLastError(t *testing.T) {
	t.Parallel()
	program := world.Program(t)
	for _, tc := range []struct {
		name, args string
		answer     int
		exit       int
		want       []string
	}{
		{"unavailable", "--wait --timeout %ds", http.StatusServiceUnavailable, 4, []string{"unable to handle the request", "Timed out: ", "1 failed"}},
		{"unavailable, lingering", "--linger %ds", http.StatusServiceUnavailable, 3, []string{"unable to handle the request", "1 failed"}},
		{"not accepted any more", "--wait --timeout %dm", http.StatusUnauthorized, 5, []string{"does not accept the credentials"}},
		{"not allowed any more", "--wait --timeout %dm", http.StatusForbidden, 5, []string{"refuses"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := world.Shared(t)
			w.Cache(world.Crashing)
			var exit, looks int
			var out string
			for seconds := 4; looks < 2 && seconds < 100; seconds *= 3 { // for a busy machine
				args := fmt.Sprintf("reconcile "+tc.args+" -n "+w.NS, seconds)
				exit, out = behindFaults(w, func(n int, _ *http.Request) faults.Fault {
					looks = n
					return faults.Fault{Answer: tc.answer}
				}, program, strings.Fields(args)...)
				if tc.exit == 5 {
					break // at the first look
				}
			}
			if exit != tc.exit {
				t.Errorf("exit status %d, want %d", exit, tc.exit)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("want %q in\n%s", want, out)
				}
			}
		})
	}
}

// A timeout while looking again does not say that caches were not seen.
func TestTimeoutAfterAllWereSeen(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	for _, name := range []string{"a", "b", "c"} {
		w.Named(name).Cache(world.Crashing)
		w.Named(name).Until(v1.ReasonCrashLoopBackOff)
	}
	var looks, stuck atomic.Int32
	config := w.Config() // of requests that have all the time
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &world.Standing{Next: next, Do: func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case looksAt.MatchString(r.URL.Path) && looks.Add(1) == 1:
				return world.Answer(r, http.StatusInternalServerError, "InternalError") // the others are due next, together
			case looks.Load() > 1 && strings.HasSuffix(r.URL.Path, "/pods"):
				stuck.Add(1)
				<-r.Context().Done() // the only worker is busy, and there is another cache for it
			}
			return send()
		}}
	})
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := reconcile.Look(t.Context(), c, reconcile.Options{
		Scope: observe.Scope{Namespaces: []string{w.NS}}, Concurrency: 1, Wait: true, Timeout: 10 * time.Second,
	})
	if err != nil || stuck.Load() != 1 || !f.TimedOut || f.Incomplete != "" || f.Total != 3 {
		t.Errorf("%v, %d stuck, timed out: %t, %d caches, %q", err, stuck.Load(), f.TimedOut, f.Total, f.Incomplete)
	}
}

// A cache that cannot be read does not keep the others from being waited for.
func TestWaitingForTheOthers(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Named("a").Cache(world.Crashing)
	w.Named("b").Cache()
	exit, out := behindFaults(w, func(_ int, r *http.Request) faults.Fault {
		if strings.HasSuffix(r.URL.Path, "/a") {
			return faults.Fault{Answer: http.StatusInternalServerError}
		}
		return faults.Fault{}
	}, world.Program(t), "reconcile", "-n", w.NS, "--wait", "--timeout", "15s")
	if exit != 4 || !strings.Contains(out, "2 caches: 1 settled, 0 progressing, 0 stalled, 1 failed") {
		t.Errorf("exit status %d\n%s", exit, out)
	}
}
