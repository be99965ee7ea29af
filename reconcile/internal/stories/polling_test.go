package stories_test

import (
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
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/observe"
)

// looksAt matches the read with which a look at a cache begins.
var looksAt = regexp.MustCompile(`/clusteredcaches/[^/]+$`)

// behindFaults runs program through a proxy that spoils looks as fault says: the
// n-th of those at caches, counted from 1. It returns the exit status and what was
// written to both streams.
func behindFaults(t *testing.T, fault func(n int, r *http.Request) faults.Fault, program string, args ...string) (int, string) {
	t.Helper()
	var looks atomic.Int32
	proxy := faults.Start(t, env.Config, func(_ int, r *http.Request) faults.Fault {
		if r.Method != http.MethodGet || !looksAt.MatchString(r.URL.Path) {
			return faults.Fault{}
		}
		return fault(int(looks.Add(1)), r)
	})
	run := exec.Command(program, append(args, "--kubeconfig", proxy.Kubeconfig)...)
	out, _ := run.CombinedOutput()
	return run.ProcessState.ExitCode(), string(out)
}

func crashing(c *v1.ClusteredCache) { c.Spec.Version = "crashing" }

// Waiting outlives reads that fail, however they do: it goes on, says so, and
// ends well when the cache has settled.
func TestWaitingOutlivesFailedReads(t *testing.T) {
	program := testenv.Program(t)
	for _, command := range []string{"reconcile --wait", "reconcile --linger 1m", "status --wait"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			c := create(t, ns, "cache", crashing)
			pass(t, ns)
			failing := []faults.Fault{
				{Answer: http.StatusInternalServerError}, {Answer: http.StatusServiceUnavailable}, {Lose: true}, {Drop: true}, {Cut: true},
				{Answer: http.StatusInternalServerError},
			}
			exit, out := behindFaults(t, func(n int, _ *http.Request) faults.Fault {
				switch {
				case n <= len(failing):
					return failing[n-1]
				case n == len(failing)+1:
					update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1" })
					if strings.HasPrefix(command, "status") {
						pass(t, ns)
					}
				}
				return faults.Fault{}
			}, program, append(strings.Fields(command), "-n", ns)...)
			if exit != 0 || !strings.Contains(out, "1 settled") || strings.Count(out, "could not be read; it is tried again") < 2 {
				t.Errorf("exit status %d\n%s", exit, out)
			}
		})
	}
}

// When reads fail to the end, the end is that of any wait: with the last error
// for the reason. What a repetition does not mend ends it at once.
func TestWaitingEndsWithTheLastError(t *testing.T) {
	program := testenv.Program(t)
	for _, tc := range []struct {
		name, args string
		answer     int
		exit       int
		want       []string
	}{
		{"unavailable", "--wait --timeout 4s", http.StatusServiceUnavailable, 4, []string{"unable to handle the request", "Timed out: ", "1 failed"}},
		{"unavailable, lingering", "--linger 4s", http.StatusServiceUnavailable, 3, []string{"unable to handle the request", "1 failed"}},
		{"not accepted any more", "--wait", http.StatusUnauthorized, 5, []string{"does not accept the credentials"}},
		{"not allowed any more", "--wait", http.StatusForbidden, 5, []string{"refuses"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			create(t, ns, "cache", crashing)
			exit, out := behindFaults(t, func(int, *http.Request) faults.Fault { return faults.Fault{Answer: tc.answer} },
				program, append(strings.Fields("reconcile "+tc.args), "-n", ns)...)
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
	ns := env.Namespace(t)
	for _, name := range []string{"a", "b", "c"} {
		create(t, ns, name, crashing)
		until(t, ns, name, v1.ReasonCrashLoopBackOff)
	}
	var looks, stuck atomic.Int32
	c := clientBehind(t, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case looksAt.MatchString(r.URL.Path) && looks.Add(1) == 1:
			return answer(r, http.StatusInternalServerError, "InternalError") // the others are due next, together
		case looks.Load() > 1 && strings.HasSuffix(r.URL.Path, "/pods"):
			stuck.Add(1)
			<-r.Context().Done() // the only worker is busy, and there is another cache for it
		}
		return send()
	})
	f, err := reconcile.Look(t.Context(), c, reconcile.Options{
		Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Wait: true, Timeout: 5 * time.Second,
	})
	if err != nil || stuck.Load() != 1 || !f.TimedOut || f.Incomplete != "" || f.Total != 3 {
		t.Errorf("%v, %d stuck, timed out: %t, %d caches, %q", err, stuck.Load(), f.TimedOut, f.Total, f.Incomplete)
	}
}

// A cache that cannot be read does not keep the others from being waited for.
func TestWaitingForTheOthers(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "a", crashing)
	create(t, ns, "b")
	exit, out := behindFaults(t, func(_ int, r *http.Request) faults.Fault {
		if strings.HasSuffix(r.URL.Path, "/a") {
			return faults.Fault{Answer: http.StatusInternalServerError}
		}
		return faults.Fault{}
	}, testenv.Program(t), "reconcile", "-n", ns, "--wait", "--timeout", "10s")
	if exit != 4 || !strings.Contains(out, "2 caches: 1 settled, 0 progressing, 0 stalled, 1 failed") {
		t.Errorf("exit status %d\n%s", exit, out)
	}
}
