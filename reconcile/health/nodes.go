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
	// Pods lists the pods that the StatefulSet controls, by ordinal.
	Pods []*corev1.Pod
	// Refusals has, by the name of a node, why its pod could not be created.
	Refusals map[string]Refusal
}

// Refusal is why a pod could not be created.
type Refusal struct {
	// Sentence is the API server's answer, as the StatefulSet controller reports it.
	Sentence string
	// Since is when the controller first reported it.
	Since time.Time
}

// Observed reports whether the numbers in the StatefulSet's status are about its
// newest generation.
func Observed(sts *appsv1.StatefulSet) bool {
	return sts.Status.ObservedGeneration >= sts.Generation && sts.Generation > 0
}

// AllWell reports whether every node that the StatefulSet asks for exists, is
// ready, and has been ready for minReadySeconds. Every node must also have the
// newest revision, unless someone set a partition or OnDelete (HeldBackBy).
func AllWell(sts *appsv1.StatefulSet) bool {
	size, s := *sts.Spec.Replicas, sts.Status
	return Observed(sts) && s.Replicas == size && s.ReadyReplicas == size &&
		(sts.Spec.MinReadySeconds == 0 || s.AvailableReplicas == size) &&
		(Updated(sts) || HeldBackBy(sts) != "")
}

// Updated reports whether every node has the newest revision.
func Updated(sts *appsv1.StatefulSet) bool {
	// With OnDelete the controller never moves currentRevision.
	return sts.Status.UpdatedReplicas == *sts.Spec.Replicas &&
		(OnDelete(sts) || sts.Status.CurrentRevision == sts.Status.UpdateRevision)
}

// HeldBackBy returns what someone set on the StatefulSet that keeps nodes on an
// older revision: "partition" or "OnDelete". It returns "" if nodes are on an older
// revision for another reason too, or if all have the newest.
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

// OnDelete reports whether someone set the update strategy OnDelete. The controller
// then never replaces a node by itself.
func OnDelete(sts *appsv1.StatefulSet) bool {
	return sts.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// Terminating reports whether a pod is being deleted. Such a pod does not count,
// even if it is ready.
func Terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// Ready reports whether a pod takes traffic.
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

// IsNewest reports whether a pod has the newest revision that the StatefulSet
// controller has seen.
func IsNewest(pod *corev1.Pod, sts *appsv1.StatefulSet) bool {
	return pod.Labels[appsv1.ControllerRevisionHashLabelKey] == sts.Status.UpdateRevision
}

// LastProgress returns when the nodes last came closer to what the spec asks for,
// or fell back from it. Four things count: our last change of the StatefulSet, a new
// pod, a change of a pod's readiness, and the first report of a refusal.
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
// revision. It returns 0 without a partition.
func Partition(sts *appsv1.StatefulSet) int32 {
	if r := sts.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return 0
}
