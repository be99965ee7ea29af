package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
)

// An older program in a pipeline is stopped (SIGSTOP) before each of its
// requests in turn, also between the page of caches and those of their
// children; meanwhile the spec changes, and a newer program in the cluster makes
// it so. When the older one goes on it puts nothing back, and both end well.
func TestProgramsOfDifferentAgesOverlap(t *testing.T) {
	older := world.Program(t) // v0.0.0-dev
	newer := testenv.Program(t, "-ldflags", "-X main.version=v99.0.0")
	world.EachRequest(t, 8, func(w *world.World, k int) bool { return overtaken(w, older, newer, k) })
}

// overtaken tells whether the older program made a k-th request.
func overtaken(w *world.World, older, newer string, k int) bool {
	w.Cache()
	w.Settle()
	w.Edit(`spec: {version: "1.6.39", size: 2}`)

	var stopped *exec.Cmd
	started := make(chan struct{})
	proxy := w.Proxy(func(n int, _ *http.Request) faults.Fault {
		if n != k {
			return faults.Fault{}
		}
		return faults.Fault{Before: func() {
			<-started
			_ = stopped.Process.Signal(syscall.SIGSTOP)
			w.Edit(`spec: {version: "1.6.40", size: 4}`)
			if out, err := exec.Command(newer, "reconcile", "--kubeconfig", w.Env.Kubeconfig, "-n", w.NS).CombinedOutput(); err != nil {
				w.Errorf("the newer program: %v\n%s", err, out)
			}
			_ = stopped.Process.Signal(syscall.SIGCONT)
		}}
	})
	var output bytes.Buffer
	stopped = exec.Command(older, "reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", w.NS)
	stopped.Stdout, stopped.Stderr = &output, &output
	if err := stopped.Start(); err != nil {
		w.Fatal(err)
	}
	close(started)
	if err := stopped.Wait(); err != nil {
		w.Errorf("stopped before request %d: %v\n%s", k, err, &output)
	}
	if proxy.Requests() < k {
		return false
	}
	s := w.StatefulSet()
	if image := s.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":1.6.40") || *s.Spec.Replicas != 4 {
		w.Errorf("stopped before request %d: %s with %d replicas\n%s", k, image, *s.Spec.Replicas, &output)
	}
	if c := w.Stored(); c.Status.ObservedGeneration != c.Generation {
		w.Errorf("stopped before request %d: status of generation %d, spec of %d", k, c.Status.ObservedGeneration, c.Generation)
	}
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	w.NothingToDo()
	return true
}
