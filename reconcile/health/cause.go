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
	// Message names the container, image or claim, and says what the kubelet or
	// the scheduler does, without ids, times and counts.
	Message string
	// Final: it cannot pass while the pod's template stays what it is.
	Final bool
}

// recentStart: a container that runs for longer than this after a crash has
// got over it; the kubelet forgets its back-off after the same time.
const recentStart = 10 * time.Minute

// CauseOf is why a pod is not ready; false: it is, is being deleted, or is just
// starting.
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

// claimOf is the claim that the pod waits for, as far as the pod tells.
func claimOf(pod *corev1.Pod) string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return strings.Join(names, ", ")
}

// causeIn reads a container's status. What alternates while nothing changes (a
// pull and its back-off, a crash and the restart) gives the same cause.
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

// absent matches what registries say of an image that they do not have.
var absent = regexp.MustCompile(`(?i)not found|manifest unknown|does not exist|invalid reference format`)

// backOff is what the kubelet puts in front of the cause while it waits.
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

// imageOf is the image that the pod asks for; the kubelet's status may name it in
// another form.
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
