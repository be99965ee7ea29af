package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
)

// wrongBy runs passes on a machine whose clock is off.
func wrongBy(w *world.World, off time.Duration, o reconcile.Options) world.Fleet {
	w.Helper()
	clock := &kube.Clock{Machine: func() time.Time { return time.Now().Add(off) }}
	c, err := kube.NewClient(&kube.Target{Config: w.Config(), Clock: clock}, nil)
	if err != nil {
		w.Fatal(err)
	}
	o.Now = clock.Now
	return w.Run(c, o)
}

// A machine whose clock is hours off does what any other does: it neither cuts
// a drain short nor begins it anew, finds no rollout overdue, writes no time that
// was not, and ends.
func TestMachineWithAWrongClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{6 * time.Hour, -6 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			w := world.Shared(t)
			w.Named("slow").Cache(world.Crashing)
			w.Named("theirs").Cache(`spec: {size: 1, deletion: {drainSeconds: 3600}}`)
			w.Named("ours").Cache(`spec: {size: 1, deletion: {drainSeconds: 3600}}`)
			w.Named("short").Cache(`spec: {size: 1, deletion: {drainSeconds: 2}}`)
			wrongBy(w, off, reconcile.Options{})
			w.Named("slow").Until(v1.ReasonCrashLoopBackOff)
			for _, name := range []string{"theirs", "ours", "short"} {
				w.Named(name).Until(v1.ReasonReady)
			}
			wrongBy(w, off, reconcile.Options{}).Of("slow").Wants(model.Progressing, v1.ReasonCrashLoopBackOff)

			// One drain is begun by a machine whose clock is right, one by the other.
			w.Named("theirs").Remove()
			w.Pass()
			w.Named("ours").Remove()
			wrongBy(w, off, reconcile.Options{})
			for _, name := range []string{"theirs", "ours"} {
				c := w.Named(name).Stored()
				nearNow(w, name+" drains", c.Annotations[v1.DrainingSinceAnnotation])
				nearNow(w, name+" changed", world.ConditionOf(c, v1.ConditionReconciling).LastTransitionTime.UTC().Format(time.RFC3339))
			}
			w.WritesNothing("passes while draining", func() {
				for _, f := range []world.Fleet{w.Pass(), wrongBy(w, off, reconcile.Options{})} {
					f.Of("theirs").Wants(model.Progressing, v1.ReasonDraining)
					f.Of("ours").Wants(model.Progressing, v1.ReasonDraining)
				}
			})

			w.Named("short").Remove()
			f := wrongBy(w, off, reconcile.Options{Wait: true, Timeout: time.Minute})
			f.Of("short").Wants(model.Settled, v1.ReasonFinalized)
		})
	}
}

func nearNow(w *world.World, what, when string) {
	w.Helper()
	at, err := time.Parse(time.RFC3339Nano, when)
	if off := time.Since(at); err != nil || off.Abs() > 10*time.Minute {
		w.Errorf("%s since %q: %s ago, %v", what, when, off, err)
	}
}

// The program goes by the server's clock, and says so when it is another.
func TestTheServersClockCounts(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	const ahead = 6 * time.Hour
	proxy := w.Proxy(func(int, *http.Request) faults.Fault { return faults.Fault{Ahead: ahead} })
	out, err := exec.Command(world.Program(t), "reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", w.NS).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the clock of this machine is not that of the API server") {
		t.Errorf("%v\n%s", err, out)
	}
	changed := w.Condition(v1.ConditionReconciling).LastTransitionTime
	nearNow(w, "changed", metav1.NewTime(changed.Add(-ahead)).UTC().Format(time.RFC3339))
}
