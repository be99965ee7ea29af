package health

import (
	"slices"
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
		(OnDelete(sts) || sts.Status.CurrentRevision == sts.Status.UpdateRevision)
}

// HeldBackBy is what someone set on the StatefulSet that keeps nodes on an
// older revision, when it is that alone: "partition", "OnDelete", or "".
func HeldBackBy(sts *appsv1.StatefulSet) string {
	size, updated := *sts.Spec.Replicas, sts.Status.UpdatedReplicas
	switch {
	case updated >= size:
		return ""
	case OnDelete(sts):
		return "OnDelete"
	case Partition(sts) > 0 && updated >= size-Partition(sts):
		return "partition"
	}
	return ""
}

// OnDelete reports whether someone set the update strategy OnDelete: the controller
// then replaces no node by itself.
func OnDelete(sts *appsv1.StatefulSet) bool {
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

// Overdue reports whether the nodes have made no progress for longer than the
// deadline. While nodes are missing and none was refused, the controller may
// still be creating them (one at a time), so the deadline does not apply.
func Overdue(nodes *Nodes, sts *appsv1.StatefulSet, deadline time.Duration, now time.Time) bool {
	if nodes == nil || !Observed(sts) || len(nodes.Pods) < int(*sts.Spec.Replicas) && len(nodes.Refusals) == 0 {
		return false
	}
	return now.Sub(nodes.LastProgress(sts)) > deadline
}

// Partition returns the ordinal below which someone keeps nodes on the older
// revision; 0: none.
func Partition(sts *appsv1.StatefulSet) int32 {
	if r := sts.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return 0
}
