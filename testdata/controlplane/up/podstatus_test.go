package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNextStatus(t *testing.T) {
	yes := true
	job := []metav1.OwnerReference{{Kind: "Job", Controller: &yes}}
	notReady := map[string]string{readyAnnotation: "false"}
	code := func(text string) map[string]string { return map[string]string{exitCodeAnnotation: text} }
	for name, test := range map[string]struct {
		meta  metav1.ObjectMeta
		image string
		phase corev1.PodPhase
		ready bool
		state string
	}{
		"server":              {phase: corev1.PodRunning, ready: true, state: "running"},
		"server not ready":    {meta: metav1.ObjectMeta{Annotations: notReady}, phase: corev1.PodRunning, state: "running"},
		"exit code, no job":   {meta: metav1.ObjectMeta{Annotations: code("3")}, phase: corev1.PodRunning, ready: true, state: "running"},
		"job":                 {meta: metav1.ObjectMeta{OwnerReferences: job}, phase: corev1.PodSucceeded, state: "exit 0"},
		"job, exit code 0":    {meta: metav1.ObjectMeta{OwnerReferences: job, Annotations: code("0")}, phase: corev1.PodSucceeded, state: "exit 0"},
		"failing job":         {meta: metav1.ObjectMeta{OwnerReferences: job, Annotations: code("3")}, phase: corev1.PodFailed, state: "exit 3"},
		"no number":           {meta: metav1.ObjectMeta{OwnerReferences: job, Annotations: code("x")}, phase: corev1.PodFailed, state: "exit 1"},
		"failing image":       {meta: metav1.ObjectMeta{OwnerReferences: job}, image: "h:5000/hook:exit-4", phase: corev1.PodFailed, state: "exit 4"},
		"hanging image":       {meta: metav1.ObjectMeta{OwnerReferences: job}, image: "hook:hang", phase: corev1.PodRunning, state: "running"},
		"job that hangs":      {meta: metav1.ObjectMeta{OwnerReferences: job, Annotations: notReady}, phase: corev1.PodRunning, state: "running"},
		"broken":              {image: "host:5000/cache:broken", phase: corev1.PodPending, state: "ImagePullBackOff"},
		"broken job":          {meta: metav1.ObjectMeta{OwnerReferences: job}, image: "cache:broken-2", phase: corev1.PodPending, state: "ImagePullBackOff"},
		"broken, with digest": {image: "cache:broken@sha256:00", phase: corev1.PodPending, state: "ImagePullBackOff"},
		"crashing":            {image: "cache:crashing-2", phase: corev1.PodRunning, state: "CrashLoopBackOff"},
		"broken only by name": {image: "broken/broken:1", phase: corev1.PodRunning, ready: true, state: "running"},
		"no tag":              {image: "host:5000/broken", phase: corev1.PodRunning, ready: true, state: "running"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: test.meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: test.image}}}}
			now := metav1.Now().Rfc3339Copy()
			status, changed := nextStatus(pod, now)
			if !changed {
				t.Fatal("a new pod was left as it is")
			}
			if status.Phase != test.phase || isReady(status) != test.ready || describe(status.ContainerStatuses[0].State) != test.state {
				t.Errorf("got phase %s, ready %v, container %+v", status.Phase, isReady(status), status.ContainerStatuses[0])
			}
			pod.Status = *status
			if again, changed := nextStatus(pod, metav1.NewTime(now.Add(time.Minute))); changed {
				t.Errorf("changed its own status:\n%+v\n%+v", status, again)
			}
		})
	}
}

func TestNextStatusFollowsAnnotation(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	for _, value := range []string{"", "false", "true"} {
		pod.Annotations = map[string]string{readyAnnotation: value}
		status, _ := nextStatus(pod, metav1.Now())
		pod.Status = *status
		if want := value != "false"; isReady(status) != want {
			t.Errorf("annotation %q: ready is %v", value, !want)
		}
	}
}

func TestNextStatusInitContainersAndGates(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	const gate = "example.com/loaded"
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "once"}, {Name: "sidecar", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "c"}},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: gate}},
	}}
	status, _ := nextStatus(pod, metav1.Now())
	for i, want := range []string{"exit 0", "running"} {
		if got := describe(status.InitContainerStatuses[i].State); got != want {
			t.Errorf("init container %d: %s, want %s", i, got, want)
		}
	}
	if isReady(status) {
		t.Error("ready in spite of a closed gate")
	}
	pod.Status = *status
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue})
	if status, _ := nextStatus(pod, metav1.Now()); !isReady(status) {
		t.Error("not ready with an open gate")
	}
}

func isReady(status *corev1.PodStatus) bool {
	for _, condition := range status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func describe(state corev1.ContainerState) string {
	switch {
	case state.Running != nil:
		return "running"
	case state.Waiting != nil:
		return state.Waiting.Reason
	case state.Terminated != nil:
		return "exit " + string(rune('0'+state.Terminated.ExitCode))
	}
	return ""
}
