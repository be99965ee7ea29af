package stories_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/internal/testenv"
)

// The program is killed after each single request of a deletion with a drain
// and two hooks: the API server has done what was asked, and nobody hears of
// it. The next run ends the deletion, and no hook's Job is made twice.
func TestDeletionSurvivesKill(t *testing.T) {
	program := testenv.Program(t)
	var last, done atomic.Int64
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for !t.Failed() {
				k, reached := int(last.Add(1)), false
				t.Run(fmt.Sprint(k), func(t *testing.T) { reached = killedAfter(t, program, k) })
				if !reached {
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	if n := done.Load(); n < 30 && !t.Failed() {
		t.Errorf("a deletion took %d requests: the test does not test", n)
	}
	t.Logf("killed after each of %d requests", done.Load())
}

// killedAfter tells whether there was a k-th request.
func killedAfter(t *testing.T, program string, k int) bool {
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood, imageGood), func(c *v1.ClusteredCache) { c.Spec.Deletion.DrainSeconds = 1 })
	pass(t, ns)
	jobs := logJobs(t, ns)
	c := remove(t, ns, "cache")

	var run *exec.Cmd
	started := make(chan struct{})
	proxy := faults.Start(t, env.Config, func(n int, _ *http.Request) faults.Fault {
		if n != k {
			return faults.Fault{}
		}
		return faults.Fault{After: func() { <-started; _ = run.Process.Kill() }}
	})
	args := []string{"reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", ns, "--wait", "--timeout", "2m"}
	run = exec.Command(program, args...)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	err := run.Wait()
	if proxy.Requests() < k {
		if err != nil {
			t.Errorf("undisturbed: %v", err)
		}
		return false
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Errorf("after a kill after request %d: %v\n%s", k, err, out)
	}
	if !isGone(t, ns, "cache", c) {
		t.Errorf("after a kill after request %d the cache is still there: %v", k, finalizers(t, ns, "cache"))
	}
	wantJobs(t, jobs, c, "a", "b")
	return true
}
