package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"net/http"
	"os/exec"
	"testing"

	"example.com/clusteredcache/reconcile/internal/faults"
)

// The program is killed after each single request of a deletion with a drain
// and two hooks: the API server has done what was asked, and nobody hears of
// it. The next run ends the deletion, and no hook's Job is made twice.
func TestDeletionSurvivesKill(t *testing.T) {
	program := world.Program(t)
	world.EachRequest(t, 30, func(w *world.World, k int) bool { return killedAfter(w, program, k) })
}

// killedAfter tells whether there was a k-th request.
func killedAfter(w *world.World, program string, k int) bool {
	w.Cache(world.Hooks(world.HookGood, world.HookGood), `spec: {deletion: {drainSeconds: 1}}`)
	w.Pass()
	jobs := w.LogJobs()
	c := w.Remove()

	var run *exec.Cmd
	started := make(chan struct{})
	proxy := w.Proxy(func(n int, _ *http.Request) faults.Fault {
		if n != k {
			return faults.Fault{}
		}
		return faults.Fault{After: func() { <-started; _ = run.Process.Kill() }}
	})
	args := []string{"reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", w.NS, "--wait", "--timeout", "2m"}
	run = exec.Command(program, args...)
	if err := run.Start(); err != nil {
		w.Fatal(err)
	}
	close(started)
	err := run.Wait()
	if proxy.Requests() < k {
		if err != nil {
			w.Errorf("undisturbed: %v", err)
		}
		return false
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		w.Errorf("after a kill after request %d: %v\n%s", k, err, out)
	}
	if !w.CacheIsGone() {
		w.Errorf("after a kill after request %d the cache is still there: %v", k, w.Stored().Finalizers)
	}
	jobs.Wants(c, "a", "b")
	return true
}
