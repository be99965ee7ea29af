package plan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/clusteredcache/reconcile/fields"
)

// Nodes is what was observed of the nodes of a cache that has not settled.
type Nodes struct {
	// Pods are those that the StatefulSet controls, by ordinal.
	Pods []*corev1.Pod
	// Refusals say, by the name of a node, why its pod could not be created.
	Refusals map[string]Refusal
}

// Refusal is why a pod could not be created.
type Refusal struct {
	// Sentence is the API server's, as the StatefulSet controller tells it.
	Sentence string
	// Since is when it was first told.
	Since time.Time
}

// NeedsNodes tells whether what a pass does or says depends on single nodes:
// the StatefulSet says itself when all is well.
func NeedsNodes(in Input) bool {
	sts := in.Live.Owned(in.Cache).StatefulSet
	return sts != nil && sts.DeletionTimestamp == nil && in.Cache.DeletionTimestamp == nil && !AllWell(sts)
}

// Observed tells whether the numbers in the StatefulSet's status are of its
// newest generation.
func Observed(sts *appsv1.StatefulSet) bool {
	return sts.Status.ObservedGeneration >= sts.Generation && sts.Generation > 0
}

// AllWell: every node that the StatefulSet asks for is there, ready for as
// long as it must be, and of the newest revision unless someone holds it back.
func AllWell(sts *appsv1.StatefulSet) bool {
	size, s := *sts.Spec.Replicas, sts.Status
	return Observed(sts) && s.Replicas == size && s.ReadyReplicas == size &&
		(sts.Spec.MinReadySeconds == 0 || s.AvailableReplicas == size) &&
		(Updated(sts) || HeldBackBy(sts) != "")
}

// Updated: every node is of the newest revision.
func Updated(sts *appsv1.StatefulSet) bool {
	// With OnDelete the controller never moves currentRevision.
	return sts.Status.UpdatedReplicas == *sts.Spec.Replicas &&
		(onDelete(sts) || sts.Status.CurrentRevision == sts.Status.UpdateRevision)
}

// HeldBackBy is what someone set on the StatefulSet that keeps nodes on an
// older revision, when it is that alone: "partition", "OnDelete", or "".
func HeldBackBy(sts *appsv1.StatefulSet) string {
	size, updated := *sts.Spec.Replicas, sts.Status.UpdatedReplicas
	switch {
	case updated >= size:
		return ""
	case onDelete(sts):
		return "OnDelete"
	case partition(sts) > 0 && updated >= size-partition(sts):
		return "partition"
	}
	return ""
}

func onDelete(sts *appsv1.StatefulSet) bool {
	return sts.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// Terminating tells a pod that is being deleted: ready or not, it counts no
// more.
func Terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// Ready tells whether a pod takes traffic.
func Ready(pod *corev1.Pod) bool {
	c := podCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// IsNewest tells whether a pod is of the newest revision that the StatefulSet
// controller has seen.
func IsNewest(pod *corev1.Pod, sts *appsv1.StatefulSet) bool {
	return pod.Labels[appsv1.ControllerRevisionHashLabelKey] == sts.Status.UpdateRevision
}

// Ordinal is the number at the end of a node's name; -1: there is none.
func Ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}

// LastProgress is when the nodes last came closer to what the spec asks for,
// or fell back from it: our last change of the StatefulSet, the newest pod, the
// newest change of a pod's readiness, the first refusal of a pod.
func (n *Nodes) LastProgress(sts *appsv1.StatefulSet) time.Time {
	var last time.Time
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	if entry := fields.OurEntry(sts, ""); entry != nil && entry.Time != nil {
		later(entry.Time.Time)
	}
	for _, pod := range n.Pods {
		later(pod.CreationTimestamp.Time)
		if c := podCondition(pod, corev1.PodReady); c != nil {
			later(c.LastTransitionTime.Time)
		}
	}
	for _, r := range n.Refusals {
		later(r.Since)
	}
	return last
}

// Overdue: the nodes have made no progress for longer than the spec allows. A
// node that is missing and was not refused may come at any moment; of several,
// the controller tries the first alone.
func Overdue(in Input, sts *appsv1.StatefulSet) bool {
	if in.Nodes == nil || !Observed(sts) || len(in.Nodes.Pods) < int(*sts.Spec.Replicas) && len(in.Nodes.Refusals) == 0 {
		return false
	}
	return in.Now.Sub(in.Nodes.LastProgress(sts)) > in.Cache.Spec.ProgressDeadline()
}
