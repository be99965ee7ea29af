package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// JobResult returns the condition with which a Job ended, and why. It returns ""
// for a Job that has not ended.
func JobResult(job *batchv1.Job) (batchv1.JobConditionType, string) {
	if job == nil {
		return "", ""
	}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type, strings.TrimSuffix(c.Reason+": "+strings.TrimSuffix(c.Message, "."), ": ")
		}
	}
	return "", ""
}

// JobTrouble returns why a Job that has not ended does not start. Of several pods
// with a cause it takes the first by name. It returns "" for a Job that starts or
// runs.
func JobTrouble(job *batchv1.Job, pods []*corev1.Pod, now time.Time) string {
	var causes []string
	noPod := job.UID != "" && job.Status.StartTime != nil && job.Status.Active == 0
	for _, p := range pods {
		if job.UID == "" || p.Labels[batchv1.JobNameLabel] != job.Name {
			continue
		}
		noPod = false
		if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue // this attempt has ended
		}
		if cause, ok := CauseOf(p, now); ok {
			causes = append(causes, fmt.Sprintf("pod %s does not start: %s", p.Name, cause.Message))
		}
	}
	if noPod {
		// A quota, Pod Security or a webhook may have refused the pod. The reason is
		// in the Job's Events, which a pass has no right to read.
		return fmt.Sprintf("it has no pod; if that lasts, see why: kubectl -n %s describe job %s", job.Namespace, job.Name)
	}
	if len(causes) == 0 {
		return ""
	}
	return slices.Min(causes)
}
