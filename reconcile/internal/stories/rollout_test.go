package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
)

// A bad image, then the good one again: the rollout heals without a hand. Our
// own StatefulSets are Parallel, which the controller of this release frees
// itself (for the releases that do not, see
// TestStuckNodesOfParallel).
func TestBadImageThenGoodImage(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	w.Edit(`spec: {version: "broken-9.9.9"}`)
	w.Until(v1.ReasonImagePullBackOff)
	w.Says("2 of 3 nodes ready", "cache-2: ImagePullBackOff: image docker.io/library/memcached:broken-9.9.9 cannot be pulled")
	if c := w.Stored(); c.Status.CurrentVersion != "1.6.38" || world.Available(c) != metav1.ConditionFalse {
		t.Errorf("with one node broken: %+v", c.Status)
	}
	w.Edit(`spec: {version: "1.6.38"}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	w.NothingToDo()
}

// The same with an adopted StatefulSet that is OrderedReady, which no release of
// the controller frees: the pass deletes the node that is in the way.
func TestBadImageThenGoodImageOrderedReady(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Create(w.SomeStatefulSet())
	w.Cache()
	ready := func(version string) func() bool {
		return func() bool {
			w.Pass()
			return w.Stored().Status.CurrentVersion == version
		}
	}
	w.Eventually("adopted and rolled out", ready("1.6.38"))
	w.Edit(`spec: {version: broken}`)
	w.Eventually("the last node is broken", func() bool {
		w.Pass()
		return strings.Contains(w.Message(), "cache-2: ImagePullBackOff")
	})
	w.Edit(`spec: {version: "1.6.39"}`)
	var deleted []string
	w.Eventually("the good version runs", func() bool {
		deleted = append(deleted, w.Pass().Cache().DeletedPods()...)
		return w.Stored().Status.CurrentVersion == "1.6.39"
	})
	if len(deleted) != 1 || !strings.HasPrefix(deleted[0], "cache-2: of an older revision and in the way of the rollout (ImagePullBackOff: ") {
		t.Errorf("deleted: %q", deleted)
	}
}

// A controller that leaves broken nodes of an older revision alone, Parallel or
// not, as that of 1.35 does: one is deleted a pass, bound to the pod that was
// seen. There is no controller here; status and pods are written by the test.
func TestStuckNodesOfParallel(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t)
	sts := made(w, 4)
	w.PatchStatus(sts, `{"observedGeneration":1,"replicas":4,"readyReplicas":2,"updatedReplicas":1,"currentRevision":"old","updateRevision":"new"}`)
	for i, p := range []struct{ revision, status string }{
		{"old", world.PodReady},                   // its turn comes when the others are ready
		{"old", world.PodWaiting("ErrImagePull")}, // broken
		{"old", world.PodWaiting("CreateContainerConfigError")},
		{"new", world.PodReady},
	} {
		w.MakeNode(i, p.revision, p.status)
	}
	left := func() []string {
		list := &corev1.PodList{}
		w.List(list)
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		return names
	}
	for _, want := range [][]string{{"cache-0", "cache-1", "cache-3"}, {"cache-0", "cache-3"}, {"cache-0", "cache-3"}} {
		f := w.Pass()
		if d := cmp.Diff(want, left()); d != "" {
			t.Errorf("after a pass (%v): %s", f.Cache().DeletedPods(), d)
		}
	}
}

// A newest revision that is broken itself is not spread to a node that an older
// one keeps from being ready for now.
func TestABrokenVersionIsNotSpread(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t)
	sts := made(w, 2)
	w.PatchStatus(sts, `{"observedGeneration":1,"replicas":2,"readyReplicas":0,"updatedReplicas":1,"currentRevision":"old","updateRevision":"new"}`)
	w.MakeNode(0, "old", world.PodWaiting("CrashLoopBackOff"))
	w.MakeNode(1, "new", world.PodWaiting("ImagePullBackOff"))
	if d := w.Pass().Cache().DeletedPods(); len(d) > 0 {
		t.Errorf("deleted: %v", d)
	}
}

// What someone holds back is not ours to free, and a rollout that is about to
// start decides anew.
func TestNodesThatAreNotInTheWay(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]string{
		"below a partition": `{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}}`,
		"OnDelete":          `{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}`,
		"a new template":    `{"template":{"spec":{"automountServiceAccountToken":true}}}`, // drift: this pass sets it back
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.Frozen(t)
			sts := made(w, 1)
			w.Patch(sts, `{"spec":`+strategy+`}`)
			w.PatchStatus(sts, fmt.Sprintf(`{"observedGeneration":%d,"replicas":1,"currentRevision":"old","updateRevision":"new"}`, sts.Generation))
			w.MakeNode(0, "old", world.PodWaiting("ErrImagePull"))
			if d := w.Pass().Cache().DeletedPods(); len(d) > 0 {
				t.Errorf("deleted: %v", d)
			}
		})
	}
}

// made is the StatefulSet of a new cache, after a pass.
func made(w *world.World, size int32) *appsv1.StatefulSet {
	w.Helper()
	w.Cache(fmt.Sprintf("spec: {size: %d}", size))
	w.Pass()
	return w.StatefulSet()
}

// A node that keeps crashing, then a version that does not.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {version: crashing}`)
	w.Until(v1.ReasonCrashLoopBackOff)
	w.Eventually("all three crash", func() bool { w.Pass(); return strings.Contains(w.Message(), "cache-2") })
	w.Says("0 of 3 nodes ready; cache-0, cache-1, cache-2: CrashLoopBackOff: container cache does not stay up: exit code 1")
	w.Edit(`spec: {version: "1"}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
}

// Pods that admission refuses, here Pod Security: the nodes that were never
// created are named, with the API server's sentence.
func TestPodsThatAdmissionRefuses(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Label("pod-security.kubernetes.io/enforce", "restricted")
	w.Cache(`spec: {podTemplate: {"spec":{"hostNetwork":true}}, size: 2, rollout: {progressDeadlineSeconds: 4}}`)
	w.Until(v1.ReasonPodNotCreated)
	// The controller tries one after the other.
	w.Says(`0 of 2 nodes ready; cache-0: PodNotCreated: is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`)
	before := w.Message()
	w.NextSecond()
	if w.Pass(); w.Message() != before {
		t.Errorf("the message changes while nothing does: %q, %q", before, w.Message())
	}
	w.Until(v1.ReasonProgressDeadlineExceeded)
	w.Edit(`spec: {podTemplate: null}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
}

// A spread that the machines cannot give: the scheduler's sentence is told. The
// scheduler is real, the two machines are objects.
func TestUnschedulable(t *testing.T) {
	t.Parallel()
	w := world.Separate(t, "--scheduler") // of its own: elsewhere pods need no machine
	for _, name := range []string{"a", "b"} {
		machine(w, name)
	}
	w.Cache(`spec: {podTemplate: {spec: {topologySpreadConstraints: [
  {topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, maxSkew: 1, minDomains: 3}]}}}`)
	w.Passing("one node finds no machine", func() bool {
		a := w.Condition(v1.ConditionAvailable)
		return a.Reason == v1.ReasonUnschedulable && strings.Contains(a.Message, "2 of 3 nodes ready") &&
			strings.Contains(a.Message, "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints")
	})
	machine(w, "c")
	w.Until(v1.ReasonReady)
}

// machine is a Node without a kubelet.
func machine(w *world.World, name string) {
	w.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Labels = map[string]string{corev1.LabelHostname: name}
	w.Create(n)
	w.PatchStatus(n, `{"conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":"4","memory":"4Gi","pods":"10"},"capacity":{"cpu":"4","memory":"4Gi","pods":"10"}}`)
	w.Patch(n, `{"spec":{"taints":null}}`)
}

// A rollout that makes no progress is stalled after its deadline, and waiting
// for it ends then; the newest spec is applied all the same.
func TestProgressDeadline(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {version: broken, rollout: {progressDeadlineSeconds: 3}}`)
	f := w.Run(w.Product(nil), reconcile.Options{Concurrency: 1, Wait: true, Timeout: time.Minute})
	f.Wants(model.Stalled, v1.ReasonProgressDeadlineExceeded)
	if f.TimedOut {
		t.Error("waiting went on")
	}
	w.Says("no progress for more than 3 s", "cache-0, cache-1, cache-2: ImagePullBackOff")
	before := w.Versions()
	w.Pass()
	if d := cmp.Diff(before, w.Versions()); d != "" {
		t.Errorf("a pass over a stalled cache wrote: %s", d)
	}
	w.Edit(`spec: {version: "1"}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
}

// A node counts when it has been ready for long enough.
func TestMinReadySeconds(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {size: 2, rollout: {minReadySeconds: 3}}`)
	w.Settle()
	w.Edit(`spec: {version: "2"}`)
	start := time.Now()
	w.Settle()
	if took := time.Since(start); took < 5*time.Second {
		t.Errorf("two nodes of 3 s each were done in %s", took)
	}
	if n := w.StatefulSet().Spec.MinReadySeconds; n != 3 {
		t.Errorf("minReadySeconds %d", n)
	}
	w.NothingToDo()
	w.Edit(`spec: {rollout: null}`)
	w.Settle()
	if n := w.StatefulSet().Spec.MinReadySeconds; n != 0 {
		t.Errorf("minReadySeconds %d after it was taken out", n)
	}
}
