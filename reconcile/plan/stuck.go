package plan

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// unstick deletes one node that blocks a rollout. Such a node has an older revision,
// is in the way of the rollout, and will not become ready. The StatefulSet
// controller waits for it without end: always with OrderedReady, and in some
// releases with Parallel. Nothing is lost, because the controller would replace the
// node in any case.
func (d *draft) unstick() {
	in := d.in
	sts := in.Live.Owned(in.Cache).StatefulSet
	if sts == nil || in.Nodes == nil || !health.Observed(sts) || health.OnDelete(sts) || d.changesPods() {
		return
	}
	byOrdinal := map[int]*corev1.Pod{}
	for _, pod := range in.Nodes.Pods {
		byOrdinal[resources.Ordinal(pod.Name)] = pod
	}
	for i := int(*sts.Spec.Replicas) - 1; i >= int(health.Partition(sts)); i-- {
		pod := byOrdinal[i]
		if pod == nil || health.Terminating(pod) || health.Ready(pod) {
			continue
		}
		if health.IsNewest(pod, sts) {
			if _, broken := health.CauseOf(pod, in.Now); broken {
				return // the rollout waits for this node, and another one would fail like it
			}
			continue
		}
		why := "it is not ready and makes no progress"
		if cause, ok := health.CauseOf(pod, in.Now); ok {
			why = cause.Reason + ": " + cause.Message
		} else if !health.Overdue(in.Nodes, sts, in.Cache.Spec.ProgressDeadline(), in.Now) {
			continue
		}
		d.Steps = append(d.Steps, model.Step{
			Action: model.ActionDelete, Target: refOf(model.KindPod, pod), Live: pod,
			Reason: fmt.Sprintf("of an older revision and in the way of the rollout (%s); a node of the newest revision takes its place", why),
		})
		return
	}
}

// changesPods reports whether the newest revision is about to change, or is
// withheld.
func (d *draft) changesPods() bool {
	for _, s := range d.Steps {
		if _, ok := s.Live.(*appsv1.StatefulSet); ok && changesTemplate(s.Changes) {
			return true
		}
	}
	return d.holds(model.KindStatefulSet)
}

// NeedsNodes reports whether what a pass does or says depends on single nodes.
// When all is well, the StatefulSet itself says so.
func NeedsNodes(in model.Input) bool {
	sts := in.Live.Owned(in.Cache).StatefulSet
	return sts != nil && sts.DeletionTimestamp == nil && in.Cache.DeletionTimestamp == nil && !health.AllWell(sts)
}
