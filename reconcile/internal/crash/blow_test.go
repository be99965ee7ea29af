package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/faults"
)

// requestTimeout of the program, and a delay that is longer.
const (
	requestTimeout = "3s"
	tooLong        = 4 * time.Second
)

// blow is a fault by name.
type blow struct {
	name  string
	fault func(*hitRun) faults.Fault
	// ends tells whether a run that was hit at this request may end so.
	ends func(request string, exit int) bool
}

func blows() []blow {
	answers := func(code, retryAfter int) func(*hitRun) faults.Fault {
		return func(*hitRun) faults.Fault { return faults.Fault{Answer: code, RetryAfter: retryAfter} }
	}
	killed := func(_ string, exit int) bool { return exit == -1 }
	return []blow{
		{"killed before", func(r *hitRun) faults.Fault { return faults.Fault{Before: r.signal(syscall.SIGKILL), Lose: true} }, killed},
		{"killed after", func(r *hitRun) faults.Fault { return faults.Fault{After: r.signal(syscall.SIGKILL)} }, killed},
		{"SIGTERM", func(r *hitRun) faults.Fault { return faults.Fault{Before: r.terminate} },
			func(_ string, exit int) bool { return exit == 143 || exit == 0 }},
		{"dropped before", func(*hitRun) faults.Fault { return faults.Fault{Lose: true} }, passing},
		{"dropped after", func(*hitRun) faults.Fault { return faults.Fault{Drop: true} }, passing},
		{"401", answers(http.StatusUnauthorized, 0), func(request string, exit int) bool {
			return exit == 5 || exit == 0 && isEvent(request)
		}},
		{"403", answers(http.StatusForbidden, 0), passing},
		{"409", answers(http.StatusConflict, 0), passing},
		{"410", answers(http.StatusGone, 0), passing},
		{"429, Retry-After 1", answers(http.StatusTooManyRequests, 1), func(_ string, exit int) bool { return exit == 0 }},
		{"500", answers(http.StatusInternalServerError, 0), passing},
		{"503", answers(http.StatusServiceUnavailable, 0), passing},
		{"504, stored", func(*hitRun) faults.Fault { return faults.Fault{Answer: http.StatusGatewayTimeout, Stored: true} }, passing},
		{"answer too late", func(*hitRun) faults.Fault { return faults.Fault{After: func() { time.Sleep(tooLong) }} }, passing},
		{late, (*hitRun).late, passing},
		{"answer cut short", func(*hitRun) faults.Fault { return faults.Fault{Cut: true} }, passing},
		{"corrupt object", func(*hitRun) faults.Fault { return faults.Fault{Change: corrupt} }, passing},
	}
}

// passing: a list that cannot be read ends the pass; what concerns the cache is
// its failure, or gone at the next try; an Event is a service. While waiting, a
// refused read ends the run, and any other is tried again.
func passing(request string, exit int) bool {
	switch {
	case exit == 0:
		return true
	case isEvent(request):
		return false
	case strings.HasPrefix(request, "GET"):
		return exit == 3 || exit == 5
	}
	return exit == 3
}

func isEvent(request string) bool { return strings.HasSuffix(request, "/events") }

// corrupt makes the last object of a list of caches one that does not decode;
// in another answer it leaves out the end.
func corrupt(contentType string, body []byte) []byte {
	list := struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Metadata   any              `json:"metadata"`
		Items      []map[string]any `json:"items"`
	}{}
	if strings.Contains(contentType, "json") && json.Unmarshal(body, &list) == nil && len(list.Items) > 0 {
		list.Items[len(list.Items)-1]["spec"] = "corrupt"
		if changed, err := json.Marshal(list); err == nil {
			return changed
		}
	}
	return body[:len(body)*2/3]
}

// hitRun is one run of the program that was hit by a fault.
type hitRun struct {
	w       *world.World
	nodes   map[string]types.UID // before
	cache   *v1.ClusteredCache   // with hooks
	jobs    *world.JobLog
	exit    int // -1: killed
	output  string
	arrived chan struct{} // closed when the last request has arrived

	started chan struct{}
	process *exec.Cmd

	mu         sync.Mutex
	requests   []string
	wrong      []string
	terminated time.Time
	afterwards []string // writes begun after SIGTERM
	deleted    string   // path of the last write, if that was a delete
}

// run makes the story happen and runs the program on it; without a fault if the
// point has none.
func (m *matrix) run(w *world.World, p point) *hitRun {
	w.Helper()
	r := &hitRun{w: w, started: make(chan struct{}), arrived: make(chan struct{})}
	p.story.before(w)
	r.nodes = w.Nodes()
	if len(p.story.hooks) > 0 {
		r.jobs, r.cache = w.LogJobs(), w.Stored()
	}
	p.story.happens(w)
	proxy := w.Proxy(func(n int, request *http.Request) faults.Fault {
		r.note(request)
		if n == p.k && p.fault.fault != nil {
			return p.fault.fault(r)
		}
		return faults.Fault{}
	})
	if p.fault.name != late {
		close(r.arrived)
	}
	args := []string{"reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", w.NS, "--request-timeout", requestTimeout}
	if p.story.wait {
		args = append(args, "--wait", "--timeout", "1m")
	}
	r.process = exec.Command(m.program, args...)
	var output bytes.Buffer
	r.process.Stdout, r.process.Stderr = &output, &output
	if err := r.process.Start(); err != nil {
		w.Fatal(err)
	}
	close(r.started)
	_ = r.process.Wait()
	r.exit, r.output = r.process.ProcessState.ExitCode(), output.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) > 0 {
		w.Errorf("writes of what is not ours: %q", r.wrong)
	}
	if took := time.Since(r.terminated); !r.terminated.IsZero() && (took > grace || len(r.afterwards) > 0) {
		w.Errorf("ended %s after SIGTERM; writes begun after it: %q", took, r.afterwards)
	}
	return r
}

// grace is less than what Kubernetes gives a pod by default.
const grace = 20 * time.Second

// ours are the writes that a pass makes, whatever happens. Releases and claims
// of ownership are patches too; a hook's Job is never deleted.
var ours = regexp.MustCompile(`^(PATCH|DELETE) /apis/apps/v1/namespaces/[^/]+/statefulsets/cache$` +
	`|^(PATCH|DELETE) /api/v1/namespaces/[^/]+/services/(nodes-)?cache$` +
	`|^(PATCH|DELETE) /apis/policy/v1/namespaces/[^/]+/poddisruptionbudgets/cache$` +
	`|^PATCH /apis/batch/v1/namespaces/[^/]+/jobs/[^/]+$` +
	`|^PATCH /api/v1/namespaces/[^/]+/persistentvolumeclaims/data-cache-\d+$` +
	`|^DELETE /api/v1/namespaces/[^/]+/pods/cache-\d+$` +
	`|^PATCH /apis/cache[.]example[.]com/v1/namespaces/[^/]+/clusteredcaches/cache(/status)?$` +
	`|^POST /apis/events[.]k8s[.]io/v1/namespaces/[^/]+/events$`)

// note keeps what the program asks for.
func (r *hitRun) note(request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := request.Method + " " + request.URL.Path
	r.requests = append(r.requests, line)
	if !world.IsWrite(request) {
		return
	}
	if !ours.MatchString(line) || !strings.Contains(line, "/"+r.w.NS+"/") {
		r.wrong = append(r.wrong, line)
	}
	// A StatefulSet that was deleted to be made anew is: that is one step.
	ends := request.Method == http.MethodPatch && request.URL.Path == r.deleted
	if r.deleted = ""; request.Method == http.MethodDelete {
		r.deleted = request.URL.Path
	}
	if !r.terminated.IsZero() && !isEvent(line) && !ends {
		r.afterwards = append(r.afterwards, line)
	}
}

func (r *hitRun) signal(s syscall.Signal) func() {
	return func() { <-r.started; _ = r.process.Process.Signal(s) }
}

// terminate sends SIGTERM and lets the program see it before the request goes on.
func (r *hitRun) terminate() {
	r.signal(syscall.SIGTERM)()
	time.Sleep(time.Second) // on a busy machine that takes a while
	r.mu.Lock()
	r.terminated = time.Now()
	r.mu.Unlock()
}

const late = "request arrives late"

// late holds a request back until the program has given it up.
func (r *hitRun) late() faults.Fault {
	arrived := sync.OnceFunc(func() { close(r.arrived) })
	return faults.Fault{Before: func() { time.Sleep(tooLong) }, After: arrived}
}
