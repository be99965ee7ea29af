package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// Cause is why a node is not ready.
type Cause struct {
	// Reason is a constant of package v1.
	Reason string
	// Message names the container, image or claim. It repeats what the kubelet or
	// the scheduler reports, without ids, times and counts.
	Message string
	// Final reports whether the cause stays as long as the pod's template does not
	// change.
	Final bool
}

// recentStart is how long a container counts as crashing after it started again.
// After the same time the kubelet forgets its back-off.
const recentStart = 10 * time.Minute

// CauseOf returns why a pod is not ready. It returns false for a pod that is
// ready, is being deleted, or is just starting.
func CauseOf(pod *corev1.Pod, now time.Time) (Cause, bool) {
	if Ready(pod) || Terminating(pod) {
		return Cause{}, false
	}
	if c := podCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
		return unscheduled(pod, c.Message), true
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if cause, ok := causeIn(pod, s, now); ok {
			return cause, true
		}
	}
	return Cause{}, false
}

func unscheduled(pod *corev1.Pod, sentence string) Cause {
	sentence = Plain(sentence)
	if strings.Contains(strings.ToLower(sentence), "persistentvolumeclaim") || strings.Contains(sentence, "persistent volumes to bind") {
		return Cause{Reason: v1.ReasonVolumeNotBound, Message: fmt.Sprintf("claim %s: %s", claimOf(pod), sentence)}
	}
	return Cause{Reason: v1.ReasonUnschedulable, Message: sentence}
}

// claimOf returns the names of the pod's claims. The pod waits for one of them, but
// its status does not say for which.
func claimOf(pod *corev1.Pod) string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return strings.Join(names, ", ")
}

// causeIn returns the cause in a container's status. States that alternate while
// nothing changes (a pull and its back-off, a crash and the restart) give the same
// cause.
func causeIn(pod *corev1.Pod, s corev1.ContainerStatus, now time.Time) (Cause, bool) {
	if w := s.State.Waiting; w != nil {
		switch w.Reason {
		case "ImagePullBackOff", "ErrImagePull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
			"InvalidImageName", "ErrImageNeverPull":
			return pull(pod, s, w), true
		case "CreateContainerConfigError", "CreateContainerError":
			return Cause{Reason: v1.ReasonCreateContainerConfigError,
				Message: fmt.Sprintf("container %s cannot be created: %s", s.Name, Plain(w.Message))}, true
		case "CrashLoopBackOff", "RunContainerError", "PostStartHookError":
			return crash(pod, s, cmp.Or(s.LastTerminationState.Terminated, s.State.Terminated)), true
		}
		return Cause{}, false
	}
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
		return crash(pod, s, t), true
	}
	last := s.LastTerminationState.Terminated
	if r := s.State.Running; r != nil && !s.Ready && last != nil && last.ExitCode != 0 && now.Sub(r.StartedAt.Time) < recentStart {
		return crash(pod, s, last), true
	}
	return Cause{}, false
}

// absent matches what registries answer about an image that they do not have.
var absent = regexp.MustCompile(`(?i)not found|manifest unknown|does not exist|invalid reference format`)

// backOff matches what the kubelet writes before the cause while it waits.
var backOff = regexp.MustCompile(`^Back-off pulling image "[^"]*"(: \w+)?(: )?`)

func pull(pod *corev1.Pod, s corev1.ContainerStatus, w *corev1.ContainerStateWaiting) Cause {
	why := Plain(backOff.ReplaceAllString(w.Message, ""))
	c := Cause{Reason: v1.ReasonImagePullBackOff, Message: fmt.Sprintf("image %s cannot be pulled", imageOf(pod, s))}
	if why != "" {
		c.Message += ": " + why
	}
	c.Final = w.Reason == "InvalidImageName" || w.Reason == "ErrImageNeverPull" || absent.MatchString(why)
	return c
}

func crash(pod *corev1.Pod, s corev1.ContainerStatus, last *corev1.ContainerStateTerminated) Cause {
	c := Cause{Reason: v1.ReasonCrashLoopBackOff, Message: fmt.Sprintf("container %s does not stay up", s.Name)}
	switch {
	case last == nil && s.State.Waiting != nil && s.State.Waiting.Reason != "CrashLoopBackOff":
		c.Message += ": " + Plain(s.State.Waiting.Message)
	case last == nil:
	case last.Reason == "OOMKilled":
		c = Cause{Reason: v1.ReasonOOMKilled, Message: fmt.Sprintf("container %s was killed: out of memory%s", s.Name, memoryOf(pod, s.Name))}
	case last.Message != "":
		c.Message += fmt.Sprintf(": exit code %d: %s", last.ExitCode, Plain(last.Message))
	default:
		c.Message += fmt.Sprintf(": exit code %d", last.ExitCode)
	}
	return c
}

// imageOf returns the image in the pod's spec. The kubelet's status may have
// another form of the name.
func imageOf(pod *corev1.Pod, s corev1.ContainerStatus) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == s.Name {
			return c.Image
		}
	}
	return cmp.Or(s.Image, "of container "+s.Name)
}

func memoryOf(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == container {
			return fmt.Sprintf(" (limit %s)", limit.String())
		}
	}
	return ""
}
