package health_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/internal/scenario"
)

// A Job that does not start is told by the same causes as a node is.
func TestJobTrouble(t *testing.T) {
	const name = "metadata: {name: backup-x, labels: {batch.kubernetes.io/job-name: backup}}\n"
	const spec = name + "spec: {containers: [{name: hook, image: \"dump:1\"}]}\n"
	for _, tc := range []struct{ title, job, pod, want string }{
		{"just made", `{metadata: {name: backup, uid: u}}`, "", ""},
		{"runs", `{metadata: {name: backup, uid: u}, status: {startTime: "2026-11-30T11:59:00Z", active: 1}}`,
			spec + `status: {phase: Running, containerStatuses: [{name: hook, state: {running: {startedAt: "2026-11-30T11:59:59Z"}}}]}`, ""},
		{"has no pod", `{metadata: {name: backup, namespace: shop, uid: u}, status: {startTime: "2026-11-30T11:59:00Z"}}`, "",
			"it has no pod; if that lasts, see why: kubectl -n shop describe job backup"},
		{"an attempt that failed says nothing of the next", `{metadata: {name: backup, uid: u}, status: {startTime: "2026-11-30T11:59:00Z"}}`,
			spec + `status: {phase: Failed, containerStatuses: [{name: hook, state: {terminated: {exitCode: 1}}}]}`, ""},
		{"image", `{metadata: {name: backup, uid: u}, status: {active: 1}}`,
			spec + `status: {phase: Pending, containerStatuses: [{name: hook, state: {waiting: {reason: SignatureValidationFailed, message: "no signature"}}}]}`,
			"pod backup-x does not start: image dump:1 cannot be pulled: no signature"},
		{"an init container", `{metadata: {name: backup, uid: u}, status: {active: 1}}`,
			spec + `status: {phase: Pending, initContainerStatuses: [{name: first, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "s" not found'}}}]}`,
			`pod backup-x does not start: container first cannot be created: secret "s" not found`},
		{"no machine", `{metadata: {name: backup, uid: u}, status: {active: 1}}`,
			spec + `status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available."}]}`,
			"pod backup-x does not start: 0/3 nodes are available"},
		{"the pod of another Job", `{metadata: {name: other, uid: u}, status: {active: 1}}`,
			spec + `status: {phase: Pending, containerStatuses: [{name: hook, state: {waiting: {reason: ErrImagePull}}}]}`, ""},
	} {
		t.Run(tc.title, func(t *testing.T) {
			job := &batchv1.Job{}
			if err := yaml.Unmarshal([]byte(tc.job), job); err != nil {
				t.Fatal(err)
			}
			var pods []*corev1.Pod
			if tc.pod != "" {
				pod := &corev1.Pod{}
				if err := yaml.Unmarshal([]byte(tc.pod), pod); err != nil {
					t.Fatal(err)
				}
				pods = append(pods, pod)
			}
			if got := health.JobTrouble(job, pods, scenario.Now); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
