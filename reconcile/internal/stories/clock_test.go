package stories_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// wrongBy runs passes on a machine whose clock is off.
func wrongBy(t *testing.T, off time.Duration, ns string, o reconcile.Options) model.Fleet {
	t.Helper()
	clock := &kube.Clock{Machine: func() time.Time { return time.Now().Add(off) }}
	c, err := kube.NewClient(&kube.Target{Config: env.Config, Clock: clock}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Scope, o.Now = observe.Scope{Namespaces: []string{ns}}, clock.Now
	return runWith(t, c, o)
}

// A machine whose clock is hours off does what any other does: it neither cuts
// a drain short nor begins it anew, finds no rollout overdue, writes no time that
// was not, and ends.
func TestMachineWithAWrongClock(t *testing.T) {
	for _, off := range []time.Duration{6 * time.Hour, -6 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			draining := func(seconds int32) func(*v1.ClusteredCache) {
				return func(c *v1.ClusteredCache) { c.Spec.Size, c.Spec.Deletion = 1, &v1.DeletionSpec{DrainSeconds: seconds} }
			}
			create(t, ns, "slow", crashing)
			create(t, ns, "theirs", draining(3600))
			create(t, ns, "ours", draining(3600))
			create(t, ns, "short", draining(2))
			wrongBy(t, off, ns, reconcile.Options{})
			until(t, ns, "slow", v1.ReasonCrashLoopBackOff)
			for _, name := range []string{"theirs", "ours", "short"} {
				until(t, ns, name, v1.ReasonReady)
			}
			wantVerdict(t, wrongBy(t, off, ns, reconcile.Options{}), "slow", model.Progressing, v1.ReasonCrashLoopBackOff)

			// One drain is begun by a machine whose clock is right, one by the other.
			remove(t, ns, "theirs")
			pass(t, ns)
			remove(t, ns, "ours")
			wrongBy(t, off, ns, reconcile.Options{})
			for _, name := range []string{"theirs", "ours"} {
				c := get(t, ns, name, &v1.ClusteredCache{})
				nearNow(t, name+" drains", c.Annotations[v1.DrainingSinceAnnotation])
				nearNow(t, name+" changed", condition(c, v1.ConditionReconciling).LastTransitionTime.UTC().Format(time.RFC3339))
			}
			before := versions(t, ns)
			for _, f := range []model.Fleet{pass(t, ns), wrongBy(t, off, ns, reconcile.Options{})} {
				wantVerdict(t, f, "theirs", model.Progressing, v1.ReasonDraining)
				wantVerdict(t, f, "ours", model.Progressing, v1.ReasonDraining)
			}
			if d := cmpDiff(before, versions(t, ns)); d != "" {
				t.Errorf("passes while draining wrote:\n%s", d)
			}

			remove(t, ns, "short")
			f := wrongBy(t, off, ns, reconcile.Options{Wait: true, Timeout: 10 * time.Second})
			wantVerdict(t, f, "short", model.Settled, v1.ReasonFinalized)
		})
	}
}

func nearNow(t *testing.T, what, when string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, when)
	if off := time.Since(at); err != nil || off.Abs() > 10*time.Minute {
		t.Errorf("%s since %q: %s ago, %v", what, when, off, err)
	}
}

// The program goes by the server's clock, and says so when it is another.
func TestTheServersClockCounts(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache")
	const ahead = 6 * time.Hour
	proxy := faults.Start(t, env.Config, func(int, *http.Request) faults.Fault { return faults.Fault{Ahead: ahead} })
	out, err := exec.Command(testenv.Program(t), "reconcile", "--kubeconfig", proxy.Kubeconfig, "-n", ns).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the clock of this machine is not that of the API server") {
		t.Errorf("%v\n%s", err, out)
	}
	changed := condition(get(t, ns, "cache", &v1.ClusteredCache{}), v1.ConditionReconciling).LastTransitionTime
	nearNow(t, "changed", metav1.NewTime(changed.Add(-ahead)).UTC().Format(time.RFC3339))
}
