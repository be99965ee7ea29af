package stories_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

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
	older := testenv.Program(t, "-ldflags", "-X main.version=v0.0.1")
	newer := testenv.Program(t, "-ldflags", "-X main.version=v99.0.0")
	var last, done atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for !t.Failed() {
				k, reached := int(last.Add(1)), false
				t.Run(fmt.Sprint(k), func(t *testing.T) { reached = overtaken(t, older, newer, k) })
				if !reached {
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	if n := done.Load(); n < 8 && !t.Failed() {
		t.Errorf("a run takes %d requests: the test does not test", n)
	}
}

// overtaken tells whether the older program made a k-th request.
func overtaken(t *testing.T, older, newer string, k int) bool {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settle(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version, c.Spec.Size = "1.6.39", 2 })

	var stopped *exec.Cmd
	started := make(chan struct{})
	proxy := faults.Start(t, env.Config, func(n int, _ *http.Request) faults.Fault {
		if n != k {
			return faults.Fault{}
		}
		return faults.Fault{Before: func() {
			<-started
			_ = stopped.Process.Signal(syscall.SIGSTOP)
			update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version, c.Spec.Size = "1.6.40", 4 })
			if out, err := exec.Command(newer, "reconcile", "--kubeconfig", env.Kubeconfig, "-n", ns).CombinedOutput(); err != nil {
				t.Errorf("the newer program: %v\n%s", err, out)
			}
			_ = stopped.Process.Signal(syscall.SIGCONT)
		}}
	})
	var output bytes.Buffer
	stopped = exec.Command(older, "reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", ns)
	stopped.Stdout, stopped.Stderr = &output, &output
	if err := stopped.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	if err := stopped.Wait(); err != nil {
		t.Errorf("stopped before request %d: %v\n%s", k, err, &output)
	}
	if proxy.Requests() < k {
		return false
	}
	s := get(t, ns, "cache", &appsv1.StatefulSet{})
	if image := s.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":1.6.40") || *s.Spec.Replicas != 4 {
		t.Errorf("stopped before request %d: %s with %d replicas\n%s", k, image, *s.Spec.Replicas, &output)
	}
	if c := get(t, ns, "cache", &v1.ClusteredCache{}); c.Status.ObservedGeneration != c.Generation {
		t.Errorf("stopped before request %d: status of generation %d, spec of %d", k, c.Status.ObservedGeneration, c.Generation)
	}
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	wantNothingToDo(t, ns)
	return true
}
