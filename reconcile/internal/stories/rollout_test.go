package stories_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// until makes passes until one of them says reason of the cache, and returns it.
func until(t *testing.T, ns, name, reason string) model.CacheReport {
	t.Helper()
	var last model.CacheReport
	testenv.Eventually(t, fmt.Sprintf("%s is %s", name, reason), func() bool {
		last = reportOf(pass(t, ns), name)
		if c := get(t, ns, name, &v1.ClusteredCache{}); condition(c, v1.ConditionAvailable).Reason == reason {
			return true
		}
		time.Sleep(100 * time.Millisecond)
		return false
	})
	return last
}

func reportOf(f model.Fleet, name string) model.CacheReport {
	for _, c := range f.Caches {
		if c.Name == name {
			return c
		}
	}
	return model.CacheReport{Name: name}
}

func message(t *testing.T, ns string) string {
	t.Helper()
	return condition(get(t, ns, "cache", &v1.ClusteredCache{}), v1.ConditionAvailable).Message
}

func wantMessage(t *testing.T, ns string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if m := message(t, ns); !strings.Contains(m, part) {
			t.Errorf("message %q, want %q in it", m, part)
		}
	}
}

// deletedPods are the nodes that passes deleted, with the reasons.
func deletedPods(r model.CacheReport) []string {
	var list []string
	for _, o := range r.Outcomes {
		if o.Step.Target.Kind == "Pod" && o.Result == model.Deleted {
			list = append(list, o.Step.Target.Name+": "+o.Step.Reason)
		}
	}
	return list
}

// A bad image, then the good one again: the rollout heals without a hand. Our
// own StatefulSets are Parallel, which the controller of this release frees
// itself (for the releases that do not, see
// TestStuckNodesOfParallel).
func TestBadImageThenGoodImage(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache")
	settle(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "broken-9.9.9" })
	until(t, ns, "cache", v1.ReasonImagePullBackOff)
	wantMessage(t, ns, "2 of 3 nodes ready", "cache-2: ImagePullBackOff: image docker.io/library/memcached:broken-9.9.9 cannot be pulled")
	if c := get(t, ns, "cache", &v1.ClusteredCache{}); c.Status.CurrentVersion != "1.6.38" || available(c) != metav1.ConditionFalse {
		t.Errorf("with one node broken: %+v", c.Status)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.38" })
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	wantNothingToDo(t, ns)
}

// orderedReady makes such a StatefulSet, which the cache adopts.
func orderedReady(t *testing.T, ns string) {
	t.Helper()
	mustCreate(t, madeByHand(ns))
}

// madeByHand is a StatefulSet that someone made by hand and lets the cache
// adopt. Nothing but its name, selector and adoption fits.
func madeByHand(ns string) *appsv1.StatefulSet {
	labels := map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: "cache"}
	s := &appsv1.StatefulSet{ObjectMeta: meta(ns, "cache")}
	s.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
	s.Spec.ServiceName, s.Spec.Replicas = "nodes-cache", new(int32(3))
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	s.Spec.Template.Labels = labels
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "cache", Image: "memcached:old"}}
	return s
}

// The same with an adopted StatefulSet that is OrderedReady, which no release of
// the controller frees: the pass deletes the node that is in the way.
func TestBadImageThenGoodImageOrderedReady(t *testing.T) {
	ns := env.Namespace(t)
	orderedReady(t, ns)
	c := create(t, ns, "cache")
	ready := func(version string) func() bool {
		return func() bool {
			pass(t, ns)
			return get(t, ns, "cache", &v1.ClusteredCache{}).Status.CurrentVersion == version
		}
	}
	testenv.Eventually(t, "adopted and rolled out", ready("1.6.38"))
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "broken" })
	testenv.Eventually(t, "the last node is broken", func() bool {
		pass(t, ns)
		return strings.Contains(message(t, ns), "cache-2: ImagePullBackOff")
	})
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.39" })
	var deleted []string
	testenv.Eventually(t, "the good version runs", func() bool {
		deleted = append(deleted, deletedPods(reportOf(pass(t, ns), "cache"))...)
		return get(t, ns, "cache", &v1.ClusteredCache{}).Status.CurrentVersion == "1.6.39"
	})
	if len(deleted) != 1 || !strings.HasPrefix(deleted[0], "cache-2: of an older revision and in the way of the rollout (ImagePullBackOff: ") {
		t.Errorf("deleted: %q", deleted)
	}
}

// A controller that leaves broken nodes of an older revision alone, Parallel or
// not, as that of 1.35 does: one is deleted a pass, bound to the pod that was
// seen. There is no controller here; status and pods are written by the test.
func TestStuckNodesOfParallel(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	sts := madeOn(t, env, ns, 4)
	setStatus(t, env, sts, `{"observedGeneration":1,"replicas":4,"readyReplicas":2,"updatedReplicas":1,"currentRevision":"old","updateRevision":"new"}`)
	for i, p := range []struct{ revision, status string }{
		{"old", podReady},                   // its turn comes when the others are ready
		{"old", podWaiting("ErrImagePull")}, // broken
		{"old", podWaiting("CreateContainerConfigError")},
		{"new", podReady},
	} {
		nodeOf(t, env, sts, i, p.revision, p.status)
	}
	left := func() []string {
		list := &corev1.PodList{}
		if err := env.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		return names
	}
	for _, want := range [][]string{{"cache-0", "cache-1", "cache-3"}, {"cache-0", "cache-3"}, {"cache-0", "cache-3"}} {
		f := passOn(t, env, ns)
		if d := cmpDiff(want, left()); d != "" {
			t.Errorf("after a pass (%v): %s", deletedPods(reportOf(f, "cache")), d)
		}
	}
}

// A newest revision that is broken itself is not spread to a node that an older
// one keeps from being ready for now.
func TestABrokenVersionIsNotSpread(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	sts := madeOn(t, env, ns, 2)
	setStatus(t, env, sts, `{"observedGeneration":1,"replicas":2,"readyReplicas":0,"updatedReplicas":1,"currentRevision":"old","updateRevision":"new"}`)
	nodeOf(t, env, sts, 0, "old", podWaiting("CrashLoopBackOff"))
	nodeOf(t, env, sts, 1, "new", podWaiting("ImagePullBackOff"))
	if d := deletedPods(reportOf(passOn(t, env, ns), "cache")); len(d) > 0 {
		t.Errorf("deleted: %v", d)
	}
}

// What someone holds back is not ours to free, and a rollout that is about to
// start decides anew.
func TestNodesThatAreNotInTheWay(t *testing.T) {
	env := frozen(t)
	for name, strategy := range map[string]string{
		"below a partition": `{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}}`,
		"OnDelete":          `{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}`,
		"a new template":    `{"template":{"spec":{"automountServiceAccountToken":true}}}`, // drift: this pass sets it back
	} {
		t.Run(name, func(t *testing.T) {
			ns := env.Namespace(t)
			sts := madeOn(t, env, ns, 1)
			if err := env.Client.Patch(t.Context(), sts, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+strategy+`}`))); err != nil {
				t.Fatal(err)
			}
			setStatus(t, env, sts, fmt.Sprintf(`{"observedGeneration":%d,"replicas":1,"currentRevision":"old","updateRevision":"new"}`, sts.Generation))
			nodeOf(t, env, sts, 0, "old", podWaiting("ErrImagePull"))
			if d := deletedPods(reportOf(passOn(t, env, ns), "cache")); len(d) > 0 {
				t.Errorf("deleted: %v", d)
			}
		})
	}
}

const podReady = `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`

func podWaiting(reason string) string {
	return `{"phase":"Pending","containerStatuses":[{"name":"cache","image":"x","imageID":"","ready":false,"restartCount":0,"state":{"waiting":{"reason":"` + reason + `","message":"no"}}}]}`
}

// madeOn is the StatefulSet of a new cache "cache", after a pass.
func madeOn(t *testing.T, env *testenv.Env, ns string, size int32) *appsv1.StatefulSet {
	t.Helper()
	c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1", Size: size}}
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	sts := &appsv1.StatefulSet{}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(c), sts); err != nil {
		t.Fatal(err)
	}
	return sts
}

// nodeOf makes a pod as the StatefulSet controller would.
func nodeOf(t *testing.T, env *testenv.Env, sts *appsv1.StatefulSet, ordinal int, revision, status string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: meta(sts.Namespace, fmt.Sprintf("%s-%d", sts.Name, ordinal))}
	pod.Labels = map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: sts.Name, appsv1.ControllerRevisionHashLabelKey: revision}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sts, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec = sts.Spec.Template.Spec
	if err := env.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	setStatus(t, env, pod, status)
}

func setStatus(t *testing.T, env *testenv.Env, o client.Object, status string) {
	t.Helper()
	if err := env.Client.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		t.Fatal(err)
	}
}

// A node that keeps crashing, then a version that does not.
func TestCrashLoop(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Version = "crashing" })
	until(t, ns, "cache", v1.ReasonCrashLoopBackOff)
	testenv.Eventually(t, "all three crash", func() bool { pass(t, ns); return strings.Contains(message(t, ns), "cache-2") })
	wantMessage(t, ns, "0 of 3 nodes ready; cache-0, cache-1, cache-2: CrashLoopBackOff: container cache does not stay up: exit code 1")
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1" })
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
}

// Pods that admission refuses, here Pod Security: the nodes that were never
// created are named, with the API server's sentence.
func TestPodsThatAdmissionRefuses(t *testing.T) {
	ns := env.Namespace(t)
	patch(t, &corev1.Namespace{ObjectMeta: meta("", ns)}, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.PodTemplate = raw(`{"spec":{"hostNetwork":true}}`)
		c.Spec.Size = 2
		c.Spec.Rollout = &v1.RolloutSpec{ProgressDeadlineSeconds: 4}
	})
	until(t, ns, "cache", v1.ReasonPodNotCreated)
	// The controller tries one after the other.
	wantMessage(t, ns, `0 of 2 nodes ready; cache-0: PodNotCreated: is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`)
	before := message(t, ns)
	time.Sleep(time.Second)
	if pass(t, ns); message(t, ns) != before {
		t.Errorf("the message changes while nothing does: %q, %q", before, message(t, ns))
	}
	until(t, ns, "cache", v1.ReasonProgressDeadlineExceeded)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.PodTemplate = nil })
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
}

// A spread that the machines cannot give: the scheduler's sentence is told. The
// scheduler is real, the two machines are objects.
func TestUnschedulable(t *testing.T) {
	scheduled, err := testenv.Start("--scheduler")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = scheduled.Stop() })
	for _, name := range []string{"a", "b"} {
		machine(t, scheduled, name)
	}
	ns := scheduled.Namespace(t)
	c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1", Size: 3, PodTemplate: raw(
		`{"spec":{"topologySpreadConstraints":[{"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule","maxSkew":1,"minDomains":3}]}}`)}}
	if err := scheduled.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	get := func() metav1.Condition {
		passOn(t, scheduled, ns)
		if err := scheduled.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		return condition(c, v1.ConditionAvailable)
	}
	testenv.Eventually(t, "one node finds no machine", func() bool {
		a := get()
		return a.Reason == v1.ReasonUnschedulable && strings.Contains(a.Message, "2 of 3 nodes ready") &&
			strings.Contains(a.Message, "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints")
	})
	machine(t, scheduled, "c")
	testenv.Eventually(t, "a third machine is enough", func() bool { return get().Reason == v1.ReasonReady })
}

// machine is a Node without a kubelet.
func machine(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: meta("", name)}
	n.Labels = map[string]string{corev1.LabelHostname: name}
	if err := env.Client.Create(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	setStatus(t, env, n, `{"conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":"4","memory":"4Gi","pods":"10"},"capacity":{"cpu":"4","memory":"4Gi","pods":"10"}}`)
	patchOn(t, env, n, `{"spec":{"taints":null}}`)
}

func patchOn(t *testing.T, env *testenv.Env, o client.Object, merge string) {
	t.Helper()
	if err := env.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		t.Fatal(err)
	}
}

// A rollout that makes no progress is stalled after its deadline, and waiting
// for it ends then; the newest spec is applied all the same.
func TestProgressDeadline(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.Version = "broken"
		c.Spec.Rollout = &v1.RolloutSpec{ProgressDeadlineSeconds: 3}
	})
	f := runWith(t, productClient(t, nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Wait: true, Timeout: time.Minute})
	wantVerdict(t, f, "cache", model.Stalled, v1.ReasonProgressDeadlineExceeded)
	if f.TimedOut {
		t.Error("waiting went on")
	}
	wantMessage(t, ns, "no progress for more than 3 s", "cache-0, cache-1, cache-2: ImagePullBackOff")
	before := versions(t, ns)
	pass(t, ns)
	if d := cmpDiff(before, versions(t, ns)); d != "" {
		t.Errorf("a pass over a stalled cache wrote: %s", d)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "1" })
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
}

// A node counts when it has been ready for long enough.
func TestMinReadySeconds(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.Size = 2
		c.Spec.Rollout = &v1.RolloutSpec{MinReadySeconds: 3}
	})
	settle(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "2" })
	start := time.Now()
	settle(t, ns)
	if took := time.Since(start); took < 5*time.Second {
		t.Errorf("two nodes of 3 s each were done in %s", took)
	}
	if n := get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.MinReadySeconds; n != 3 {
		t.Errorf("minReadySeconds %d", n)
	}
	wantNothingToDo(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Rollout = nil })
	settle(t, ns)
	if n := get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.MinReadySeconds; n != 0 {
		t.Errorf("minReadySeconds %d after it was taken out", n)
	}
}
