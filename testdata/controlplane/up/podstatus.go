package main

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a test can say about a pod; README.md describes it.
const (
	readyAnnotation    = "controlplane.test/ready"     // "false": runs, but is not ready
	exitCodeAnnotation = "controlplane.test/exit-code" // of the containers of a Job's pod
	brokenTag          = "broken"                      // an image tag that cannot be pulled starts so
	crashingTag        = "crashing"                    // and one whose containers end again and again
	exitTag            = "exit-"                       // an image tag that starts so gives the exit code of a Job's pod
	hangTag            = "hang"                        // an image with this tag never ends
)

// nextStatus is the status that a kubelet would have given the pod by now, but
// for its IP, and whether it differs from the one the pod has. It is a fixed
// point: a pod with that status gets no other one.
func nextStatus(pod *corev1.Pod, now metav1.Time) (*corev1.PodStatus, bool) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return &pod.Status, false
	}
	status := pod.Status.DeepCopy()
	if status.StartTime == nil {
		status.StartTime = &now
	}
	switch {
	case tagged(brokenTag, pod.Spec.InitContainers) || tagged(brokenTag, pod.Spec.Containers):
		setPending(pod, status, now)
	case tagged(crashingTag, pod.Spec.Containers):
		setCrashing(pod, status, now)
	case pod.Annotations[readyAnnotation] == "false" || firstTag(pod) == hangTag:
		setRunning(pod, status, false, now)
	case isJobPod(pod):
		setFinished(pod, status, now)
	default:
		setRunning(pod, status, true, now)
	}
	return status, !equality.Semantic.DeepEqual(status, &pod.Status)
}

// setPending makes the containers with a broken image wait for it.
func setPending(pod *corev1.Pod, status *corev1.PodStatus, now metav1.Time) {
	state := func(c corev1.Container) corev1.ContainerState {
		if tagged(brokenTag, []corev1.Container{c}) {
			return waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", c.Image))
		}
		return waiting("PodInitializing", "")
	}
	status.Phase = corev1.PodPending
	status.InitContainerStatuses = containerStatuses(pod.Spec.InitContainers, false, state)
	status.ContainerStatuses = containerStatuses(pod.Spec.Containers, false, state)
	initialized := corev1.ConditionTrue
	if tagged(brokenTag, pod.Spec.InitContainers) {
		initialized = corev1.ConditionFalse
	}
	setCondition(status, corev1.PodCondition{Type: corev1.PodInitialized, Status: initialized, Reason: "", LastTransitionTime: now})
	setCondition(status, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: now})
	setCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: now})
}

func setRunning(pod *corev1.Pod, status *corev1.PodStatus, containersReady bool, now metav1.Time) {
	running := func(corev1.Container) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *status.StartTime}}
	}
	status.Phase = corev1.PodRunning
	setInitContainers(pod, status, running)
	status.ContainerStatuses = containerStatuses(pod.Spec.Containers, containersReady, running)
	setCondition(status, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: "", LastTransitionTime: now})
	if !containersReady {
		setCondition(status, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: now})
		setCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: now})
		return
	}
	setCondition(status, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, Reason: "", LastTransitionTime: now})
	if gatesOpen(pod) {
		setCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "", LastTransitionTime: now})
	} else {
		setCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", LastTransitionTime: now})
	}
}

// setCrashing makes the containers wait for the next start after a crash.
func setCrashing(pod *corev1.Pod, status *corev1.PodStatus, now metav1.Time) {
	setRunning(pod, status, false, now)
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		started := false
		c.Started, c.RestartCount = &started, 3
		c.State = waiting("CrashLoopBackOff", fmt.Sprintf("back-off 40s restarting failed container=%s", c.Name))
		c.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", StartedAt: *status.StartTime, FinishedAt: *status.StartTime,
		}}
	}
}

// setFinished ends all containers with the exit code the pod asks for.
func setFinished(pod *corev1.Pod, status *corev1.PodStatus, now metav1.Time) {
	code, reason := exitCode(pod), "Completed"
	status.Phase = corev1.PodSucceeded
	if code != 0 {
		status.Phase, reason = corev1.PodFailed, "Error"
	}
	ended := func(code int32, reason string) func(corev1.Container) corev1.ContainerState {
		return func(corev1.Container) corev1.ContainerState {
			return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: reason, StartedAt: *status.StartTime, FinishedAt: now,
			}}
		}
	}
	setInitContainers(pod, status, ended(0, "Completed"))
	status.ContainerStatuses = containerStatuses(pod.Spec.Containers, false, ended(code, reason))
	setCondition(status, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: "PodCompleted", LastTransitionTime: now})
	setCondition(status, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now})
	setCondition(status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now})
}

// setInitContainers completes them, except those that run beside the others.
func setInitContainers(pod *corev1.Pod, status *corev1.PodStatus, sidecar func(corev1.Container) corev1.ContainerState) {
	status.InitContainerStatuses = containerStatuses(pod.Spec.InitContainers, true, func(c corev1.Container) corev1.ContainerState {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return sidecar(c)
		}
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: *status.StartTime, FinishedAt: *status.StartTime,
		}}
	})
}

func containerStatuses(containers []corev1.Container, ready bool, state func(corev1.Container) corev1.ContainerState) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: ready, State: state(c)}
		started := s.State.Running != nil
		s.Started = &started
		if s.State.Waiting == nil {
			s.ImageID = c.Image
		}
		statuses = append(statuses, s)
	}
	return statuses
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// setCondition keeps the transition time of a condition that stays what it was.
func setCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	for i := range status.Conditions {
		if old := &status.Conditions[i]; old.Type == condition.Type {
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			*old = condition
			return
		}
	}
	status.Conditions = append(status.Conditions, condition)
}

// gatesOpen tells whether all conditions that others add to readiness are true.
func gatesOpen(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, condition := range pod.Status.Conditions {
			open = open || condition.Type == gate.ConditionType && condition.Status == corev1.ConditionTrue
		}
		if !open {
			return false
		}
	}
	return true
}

func isJobPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

// exitCode is 1 for what is no number, so that the test that wrote it does not
// take the pod for a success.
func exitCode(pod *corev1.Pod) int32 {
	text, found := pod.Annotations[exitCodeAnnotation]
	if !found {
		text, found = strings.CutPrefix(firstTag(pod), exitTag)
	}
	if !found {
		return 0
	}
	code, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 1
	}
	return int32(code)
}

// tagged tells whether the tag of any image starts with prefix.
func tagged(prefix string, containers []corev1.Container) bool {
	for _, c := range containers {
		if strings.HasPrefix(tagOf(c.Image), prefix) {
			return true
		}
	}
	return false
}

func firstTag(pod *corev1.Pod) string { return tagOf(pod.Spec.Containers[0].Image) }

func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@") // the digest
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}
