package health_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/internal/scenario"
)

const someSpec = `
metadata: {name: cache-2}
spec:
  containers: [{name: cache, image: "memcached:1", resources: {limits: {memory: 64Mi}}}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data-cache-2}}]
`

// What kubelet and scheduler say of a pod, as they say it.
func TestCauseOf(t *testing.T) {
	tests := []struct {
		name, status string
		want         health.Cause
	}{
		{"just made", `{phase: Pending}`, health.Cause{}},
		{"starting", `{phase: Pending, containerStatuses: [{name: cache, state: {waiting: {reason: ContainerCreating}}}]}`, health.Cause{}},
		{"ready after a crash", `{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: cache, ready: true, restartCount: 4, state: {running: {startedAt: "2026-11-30T11:59:00Z"}}, lastState: {terminated: {exitCode: 1}}}]}`, health.Cause{}},
		{"pulling failed", `{containerStatuses: [{name: cache, state: {waiting: {reason: ErrImagePull, message: "rpc error: code = Unknown desc = connection refused."}}}]}`,
			health.Cause{Reason: v1.ReasonImagePullBackOff, Message: "image memcached:1 cannot be pulled: rpc error: code = Unknown desc = connection refused"}},
		{"and backed off: the same", `{containerStatuses: [{name: cache, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "memcached:1": ErrImagePull: rpc error: code = Unknown desc = connection refused.'}}}]}`,
			health.Cause{Reason: v1.ReasonImagePullBackOff, Message: "image memcached:1 cannot be pulled: rpc error: code = Unknown desc = connection refused"}},
		{"no cause is told", `{containerStatuses: [{name: cache, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "memcached:1"'}}}]}`,
			health.Cause{Reason: v1.ReasonImagePullBackOff, Message: "image memcached:1 cannot be pulled"}},
		{"no such image", `{containerStatuses: [{name: cache, state: {waiting: {reason: ErrImagePull, message: "docker.io/library/memcached:1: not found"}}}]}`,
			health.Cause{Reason: v1.ReasonImagePullBackOff, Message: "image memcached:1 cannot be pulled: docker.io/library/memcached:1: not found", Final: true}},
		{"no image name", `{containerStatuses: [{name: cache, state: {waiting: {reason: InvalidImageName, message: "x"}}}]}`,
			health.Cause{Reason: v1.ReasonImagePullBackOff, Message: "image memcached:1 cannot be pulled: x", Final: true}},
		{"an init container", `{initContainerStatuses: [{name: first, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}], containerStatuses: [{name: cache, state: {waiting: {reason: PodInitializing}}}]}`,
			health.Cause{Reason: v1.ReasonCrashLoopBackOff, Message: "container first does not stay up: exit code 3"}},
		{"a missing Secret", `{containerStatuses: [{name: cache, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "s" not found'}}}]}`,
			health.Cause{Reason: v1.ReasonCreateContainerConfigError, Message: `container cache cannot be created: secret "s" not found`}},
		{"crashing, between two tries", `{containerStatuses: [{name: cache, restartCount: 5, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 40s"}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`,
			health.Cause{Reason: v1.ReasonCrashLoopBackOff, Message: "container cache does not stay up: exit code 1"}},
		{"crashing, during one: the same", `{containerStatuses: [{name: cache, restartCount: 6, state: {running: {startedAt: "2026-11-30T11:59:59Z"}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`,
			health.Cause{Reason: v1.ReasonCrashLoopBackOff, Message: "container cache does not stay up: exit code 1"}},
		{"crashing, just ended: the same", `{containerStatuses: [{name: cache, restartCount: 6, state: {terminated: {exitCode: 1, reason: Error}}}]}`,
			health.Cause{Reason: v1.ReasonCrashLoopBackOff, Message: "container cache does not stay up: exit code 1"}},
		{"crashed long ago, not ready now", `{containerStatuses: [{name: cache, restartCount: 6, state: {running: {startedAt: "2026-11-30T09:00:00Z"}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`, health.Cause{}},
		{"cannot be started", `{containerStatuses: [{name: cache, state: {waiting: {reason: RunContainerError, message: "exec: \"x\": executable file not found"}}}]}`,
			health.Cause{Reason: v1.ReasonCrashLoopBackOff, Message: `container cache does not stay up: exec: "x": executable file not found`}},
		{"out of memory", `{containerStatuses: [{name: cache, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`,
			health.Cause{Reason: v1.ReasonOOMKilled, Message: "container cache was killed: out of memory (limit 64Mi)"}},
		{"no machine", `{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient memory."}]}`,
			health.Cause{Reason: v1.ReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient memory"}},
		{"no volume", `{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."}]}`,
			health.Cause{Reason: v1.ReasonVolumeNotBound, Message: "claim data-cache-2: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			pod := &corev1.Pod{}
			if err := yaml.Unmarshal([]byte(someSpec+"status: "+tc.status), pod); err != nil {
				t.Fatal(err)
			}
			got, found := health.CauseOf(pod, scenario.Now)
			if got != tc.want || found != (tc.want.Reason != "") {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// What others say is the same as long as they say the same, and short.
func TestPlain(t *testing.T) {
	for said, want := range map[string]string{
		"at 2026-11-30T12:00:01Z: no":                          "at ...: no",
		"failed\n\tto  pull.":                                  "failed to pull",
		"request 7b0f3a86-1c86-4a3e-9d5c-0123456789ab refused": "request ... refused",
		"dial 0xc000123: x":                                    "dial ...: x",
		"container 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef is gone":   "container ... is gone",
		"x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef: not found": "x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef: not found",
		"0/2 nodes are available": "0/2 nodes are available",
	} {
		if got := health.Plain(said); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
	if n := len(health.Plain(strings.Repeat("é", 9999))); n > 300 {
		t.Errorf("%d bytes", n)
	}
}

// The deadline counts from the last thing that moved, and a node that may come
// at any moment keeps it from counting.
func TestOverdue(t *testing.T) {
	s := scenario.Load(t, "converged")
	in := s.Input(t)
	sts := in.Live.StatefulSet.DeepCopy() // our entry is an hour old
	pod := func(age time.Duration) *corev1.Pod {
		p := &corev1.Pod{}
		p.CreationTimestamp.Time = in.Now.Add(-age)
		return p
	}
	hour := 61 * time.Minute
	for name, tc := range map[string]struct {
		nodes *health.Nodes
		want  bool
	}{
		"nobody looked":            {nil, false},
		"all old":                  {&health.Nodes{Pods: []*corev1.Pod{pod(hour), pod(hour), pod(hour)}}, true},
		"one is new":               {&health.Nodes{Pods: []*corev1.Pod{pod(hour), pod(hour), pod(time.Minute)}}, false},
		"one is missing":           {&health.Nodes{Pods: []*corev1.Pod{pod(hour), pod(hour)}}, false},
		"one was refused long ago": {&health.Nodes{Pods: []*corev1.Pod{pod(hour), pod(hour)}, Refusals: map[string]health.Refusal{"cache-2": {Since: in.Now.Add(-hour)}}}, true},
		"one was refused just now": {&health.Nodes{Pods: []*corev1.Pod{pod(hour), pod(hour)}, Refusals: map[string]health.Refusal{"cache-2": {Since: in.Now}}}, false},
	} {
		if in.Nodes = tc.nodes; health.Overdue(in.Nodes, sts, in.Cache.Spec.ProgressDeadline(), in.Now) != tc.want {
			t.Errorf("%s: %v", name, !tc.want)
		}
	}
	in.Nodes = &health.Nodes{Pods: []*corev1.Pod{pod(hour), pod(hour), pod(hour)}}
	in.Cache = in.Cache.DeepCopy()
	in.Cache.Spec.Rollout = &v1.RolloutSpec{ProgressDeadlineSeconds: 7200}
	if health.Overdue(in.Nodes, sts, in.Cache.Spec.ProgressDeadline(), in.Now) {
		t.Error("before its own deadline")
	}
}
