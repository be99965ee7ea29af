// Package status says what state a cache is in. Its input is what was observed,
// what was planned, and what the API server answered. Its output is the status to
// write and a verdict. It is pure: it has no context, client, logger or clock.
//
// It decides nothing by the previous status. It only keeps what is stored nowhere
// else: the version that ran before a rollout ended, and when each condition last
// changed.
package status

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	cachev1ac "example.com/clusteredcache/api/v1/applyconfiguration/api/v1"
	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// maxMessage limits a condition's message in bytes. The API server refuses more
// than 32768, and the answer of a webhook may have any length.
const maxMessage = 1024

// For returns the status to write and the cache's state. The status is nil if the
// cache is about to disappear: it is being deleted, and neither we nor others keep
// it.
func For(in model.Input, p model.Plan, outcomes []model.Outcome) (*cachev1ac.ClusteredCacheApplyConfiguration, model.Verdict) {
	sts := statefulSetAfter(in, outcomes)
	n := count(in, sts)
	verdict := judge(in, p, outcomes, sts)
	if in.Cache.DeletionTimestamp != nil && len(p.Holds) == 0 && !outlives(in.Cache) {
		return nil, verdict
	}
	s := cachev1ac.ClusteredCacheStatus().
		WithObservedGeneration(in.Cache.Generation).
		WithReplicas(n.replicas).
		WithReadyReplicas(n.ready).
		WithUpdatedReplicas(n.updated).
		WithSelector(labels.SelectorFromSet(resources.SelectorLabels(in.Cache.Name)).String()).
		WithConditions(conditions(in, n, verdict)...)
	if version := currentVersion(in, sts, n); version != "" {
		s.WithCurrentVersion(version)
	}
	if sts != nil {
		s.WithNodes(resources.Nodes(in.Cache, min(*sts.Spec.Replicas, v1.MaxSize))...) // someone may have set any number by hand
	}
	return cachev1ac.ClusteredCache(in.Cache.Name, in.Cache.Namespace).WithStatus(s), verdict
}

// statefulSetAfter returns the cache's own StatefulSet as the API server last
// returned it, in the observation or in answer to a step. It returns nil without a
// StatefulSet.
func statefulSetAfter(in model.Input, outcomes []model.Outcome) *appsv1.StatefulSet {
	sts := in.Live.Owned(in.Cache).StatefulSet
	for _, o := range outcomes {
		if s, ok := o.Object.(*appsv1.StatefulSet); ok && s != nil && o.Result != model.Failed {
			if o.Result == model.Replaced && sts != nil {
				s = around(s, sts)
			}
			sts = s
		}
	}
	return sts
}

// around returns a StatefulSet that replaced an old one and kept its nodes, with the
// status of the old one. The nodes exist, but the controller has not counted them
// yet.
func around(fresh, old *appsv1.StatefulSet) *appsv1.StatefulSet {
	s := fresh.DeepCopy()
	s.Status = *old.Status.DeepCopy()
	s.Status.ObservedGeneration = 0
	return s
}

// numbers are the numbers of nodes in the StatefulSet. Without a StatefulSet they
// are zero.
type numbers struct {
	size, replicas, ready, updated int32
	// fresh is how many nodes are ready, but not yet for minReadySeconds.
	fresh int32
	// exists reports whether the StatefulSet exists.
	exists bool
	// observed reports whether the numbers are about the newest generation of the
	// StatefulSet, and whether it asks for as many nodes as the spec.
	observed bool
	// well reports whether every node is ready and has the newest revision, except
	// nodes that pausedBy keeps on an older one.
	well bool
	// pausedBy is what keeps nodes on an older revision: "partition" or "OnDelete".
	// It is set only if the rollout waits for nothing else.
	pausedBy string
}

// count returns the numbers of the StatefulSet.
func count(in model.Input, sts *appsv1.StatefulSet) numbers {
	n := numbers{size: in.Cache.Spec.Size}
	if sts == nil {
		return n
	}
	n.exists = true
	n.observed = health.Observed(sts) && *sts.Spec.Replicas == n.size // they differ if our own scale step was withheld or refused
	n.replicas, n.updated = sts.Status.Replicas, sts.Status.UpdatedReplicas
	n.ready = max(0, sts.Status.ReadyReplicas-leaving(in.Nodes))
	if sts.Spec.MinReadySeconds > 0 {
		n.fresh = max(0, n.ready-sts.Status.AvailableReplicas)
	}
	n.well = n.observed && health.AllWell(sts) && n.ready == n.size
	if n.well {
		n.pausedBy = health.HeldBackBy(sts)
	}
	return n
}

// rolledOut reports whether the nodes are exactly those that the spec asks for, and
// all of them are ready and have the newest revision.
func (n numbers) rolledOut() bool { return n.well && n.pausedBy == "" }

func (n numbers) sentence() string {
	s := fmt.Sprintf("%d of %d nodes ready", n.ready, n.size)
	if n.fresh > 0 {
		s += fmt.Sprintf(" (%d of them for less than spec.rollout.minReadySeconds)", n.fresh)
	}
	switch {
	case n.pausedBy != "":
		s += fmt.Sprintf("; %d of %d nodes on the new version, paused by %s", n.updated, n.size, n.pausedBy)
	case n.replicas > n.size:
		s += fmt.Sprintf(", %d to be removed", n.replicas-n.size)
	case n.updated < n.replicas:
		s += fmt.Sprintf(", %d of %d on the newest revision", n.updated, n.size)
	}
	return s
}

// judge returns the most important fact about the cache. In this order: a failure,
// what blocks, what the pass waits for, what is under way.
func judge(in model.Input, p model.Plan, outcomes []model.Outcome, sts *appsv1.StatefulSet) model.Verdict {
	n := count(in, sts)
	if failed := failures(outcomes); len(failed) > 0 {
		if apierrors.HasStatusCause(failed[0].Err, corev1.NamespaceTerminatingCause) {
			return model.Verdict{State: model.Progressing, Reason: v1.ReasonNamespaceTerminating,
				Message: fmt.Sprintf("namespace %s is being deleted, and nothing can be created in it; the cache goes with it", in.Cache.Namespace)}
		}
		reason := v1.ReasonApplyFailed
		if failed[0].Rejected {
			reason = v1.ReasonApplyRejected
		}
		return model.Verdict{State: model.NotDone, Reason: reason, Message: failureMessage(failed)}
	}
	for _, class := range []model.Class{model.Blocked, model.Waiting} {
		if held := holdsOf(p, class); len(held) > 0 {
			message := holdMessage(held)
			if n.exists && !n.rolledOut() && in.Cache.DeletionTimestamp == nil {
				message += "; " + rollout(in, sts, n).Message // a Hold does not stop the nodes
			}
			return model.Verdict{State: stateOf(held[0]), Reason: held[0].Reason, Message: message}
		}
	}
	switch {
	case len(outcomes) < len(p.Steps):
		message := pending(p.Steps[len(outcomes):])
		if n.exists && !n.rolledOut() && in.Cache.DeletionTimestamp == nil {
			message += "; " + rollout(in, sts, n).Message
		}
		return model.Verdict{State: model.Progressing, Reason: v1.ReasonPending, Message: message}
	case in.Cache.DeletionTimestamp != nil:
		return finalized(in, p)
	case n.exists && !n.observed:
		return model.Verdict{State: model.Progressing, Reason: v1.ReasonNotObserved, Message: "waiting for the StatefulSet controller to see the newest StatefulSet"}
	case !n.rolledOut():
		return rollout(in, sts, n)
	}
	return model.Verdict{State: model.Settled, Reason: v1.ReasonReady, Message: n.sentence()}
}

// finalized returns the verdict on a cache that is being deleted and that we do not
// keep. It names the hooks that were skipped.
func finalized(in model.Input, p model.Plan) model.Verdict {
	v := model.Verdict{State: model.Settled, Reason: v1.ReasonFinalized, Message: "being deleted"}
	if len(p.Steps) > 0 {
		v.Message = p.Steps[len(p.Steps)-1].Reason
	}
	v.Message += "; nothing of ours keeps it"
	if d := in.Cache.Spec.Deletion; in.Deletion.NamespaceTerminating && d != nil && len(d.Hooks) > 0 {
		v.Reason = v1.ReasonNamespaceTerminating
	}
	return v
}

// outlives reports whether the cache remains because of other finalizers and has a
// status from an earlier pass, which must then be corrected. The finalizers of the
// garbage collector do not count, because it is done in a moment.
func outlives(cache *v1.ClusteredCache) bool {
	return cache.Status.ObservedGeneration > 0 && slices.ContainsFunc(cache.Finalizers, func(f string) bool {
		return f != v1.Finalizer && f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents
	})
}

// pending names the first step that a pass has not done yet, and says how many
// follow it.
func pending(left []model.Step) string {
	first := fmt.Sprintf("%s %s %s", left[0].Action, left[0].Target.Kind, left[0].Target.Name)
	if left[0].Reason != "" {
		first += " (" + left[0].Reason + ")"
	}
	if n := len(left); n > 1 {
		return fmt.Sprintf("%d changes are not applied yet: %s and %d more", n, first, n-1)
	}
	return "1 change is not applied yet: " + first
}

func stateOf(h model.Hold) model.State {
	switch {
	case h.Class == model.Blocked:
		return model.Stalled
	case h.Reason == v1.ReasonSuspended:
		return model.Settled // the user asked for it, and nothing is under way
	}
	return model.Progressing
}

func failures(outcomes []model.Outcome) []model.Outcome {
	var failed []model.Outcome
	for _, o := range outcomes {
		if o.Result == model.Failed {
			failed = append(failed, o)
		}
	}
	return failed
}

func failureMessage(failed []model.Outcome) string {
	sentences := make([]string, 0, len(failed))
	for _, o := range failed {
		sentences = append(sentences, fmt.Sprintf("%s %s: %v", o.Step.Action, o.Step.Target, o.Err))
	}
	return strings.Join(sentences, "; ")
}

func holdsOf(p model.Plan, class model.Class) []model.Hold {
	var held []model.Hold
	for _, h := range p.Holds {
		if h.Class == class {
			held = append(held, h)
		}
	}
	return held
}

func holdMessage(held []model.Hold) string {
	sentences := make([]string, 0, len(held))
	for _, h := range held {
		sentences = append(sentences, h.Message)
	}
	return strings.Join(sentences, "; ")
}

// currentVersion returns the version that runs. It becomes the template's version
// when every node has that, and stays the same until then.
func currentVersion(in model.Input, sts *appsv1.StatefulSet, n numbers) string {
	if n.rolledOut() {
		if version := versionOf(sts.Spec.Template.Spec); version != "" {
			return version
		}
	}
	return in.Cache.Status.CurrentVersion
}

func versionOf(pod corev1.PodSpec) string {
	for _, c := range pod.Containers {
		if c.Name == v1.ContainerName {
			return resources.VersionOf(c.Image)
		}
	}
	return ""
}

// conditions returns always the same three conditions.
func conditions(in model.Input, n numbers, verdict model.Verdict) []*acmetav1.ConditionApplyConfiguration {
	return []*acmetav1.ConditionApplyConfiguration{
		condition(in, v1.ConditionAvailable, available(n), verdict),
		condition(in, v1.ConditionReconciling, truth(underWay(verdict)), verdict),
		condition(in, v1.ConditionStalled, truth(stuck(verdict)), verdict),
	}
}

// available returns the status of the condition Available. It trusts only numbers
// of the newest generation: after our own apply the old numbers may say that all
// nodes are ready.
func available(n numbers) metav1.ConditionStatus {
	switch {
	case !n.exists || n.ready != n.size:
		return metav1.ConditionFalse
	case !n.observed:
		return metav1.ConditionUnknown
	}
	return metav1.ConditionTrue
}

func underWay(v model.Verdict) bool {
	return v.State == model.Progressing || v.State == model.NotDone && v.Reason == v1.ReasonApplyFailed
}

func stuck(v model.Verdict) bool {
	return v.State == model.Stalled || v.State == model.NotDone && v.Reason != v1.ReasonApplyFailed
}

func truth(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func condition(in model.Input, kind string, status metav1.ConditionStatus, verdict model.Verdict) *acmetav1.ConditionApplyConfiguration {
	changed := metav1.NewTime(in.Now)
	for _, old := range in.Cache.Status.Conditions {
		if old.Type == kind && old.Status == status {
			changed = old.LastTransitionTime
		}
	}
	return acmetav1.Condition().
		WithType(kind).
		WithStatus(status).
		WithReason(verdict.Reason).
		WithMessage(trim(verdict)).
		WithObservedGeneration(in.Cache.Generation).
		WithLastTransitionTime(changed)
}

// trim returns the message of a verdict, cut to a length that fits. From the
// answers of the API server it removes what changes while the reason stays the same.
func trim(v model.Verdict) string {
	if v.State == model.NotDone {
		return health.Cut(health.Steady(v.Message), maxMessage)
	}
	return health.Cut(v.Message, maxMessage)
}
