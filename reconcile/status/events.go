package status

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
)

// Reasons of Events that are of a step, not of a transition.
const (
	eventDowngrade   = "Downgrade"
	eventNodeDeleted = "NodeDeleted"
	eventReplaced    = "StatefulSetReplaced"
	eventGrowing     = "VolumeGrowing"
)

// maxNote is the API server's bound for the note of an Event, in bytes.
const maxNote = 1024

// Events are what there is to tell of a pass over one cache to whoever looks at
// the cache later: a new reason of its status, and steps that a person may
// wonder about. A cache that stays as it is has none.
func Events(in model.Input, outcomes []model.Outcome, verdict model.Verdict) []model.Event {
	events := stepEvents(outcomes)
	if unimportant[verdict.Reason] {
		return events
	}
	before := apimeta.FindStatusCondition(in.Cache.Status.Conditions, v1.ConditionAvailable)
	if before != nil && before.Reason == verdict.Reason {
		return events
	}
	kind := corev1.EventTypeNormal
	if stuck(verdict) || troubles[verdict.Reason] {
		kind = corev1.EventTypeWarning
	}
	return append(events, model.Event{Type: kind, Reason: verdict.Reason, Action: "Reconcile", Note: trim(verdict)})
}

// unimportant are reasons that last for a moment: what comes of them is told.
var unimportant = map[string]bool{v1.ReasonNotObserved: true, v1.ReasonPending: true}

// troubles are reasons of caches that may yet settle, and that are no good news.
var troubles = map[string]bool{
	v1.ReasonImagePullBackOff: true, v1.ReasonCrashLoopBackOff: true, v1.ReasonOOMKilled: true,
	v1.ReasonCreateContainerConfigError: true, v1.ReasonUnschedulable: true, v1.ReasonVolumeNotBound: true,
	v1.ReasonPodNotCreated: true, v1.ReasonConfigMapNotFound: true, v1.ReasonApplyFailed: true,
}

func stepEvents(outcomes []model.Outcome) []model.Event {
	var events []model.Event
	for _, o := range outcomes {
		s := o.Step
		told := func(kind, reason, note string) {
			events = append(events, model.Event{Type: kind, Reason: reason, Action: strings.ToUpper(string(s.Action[:1])) + string(s.Action[1:]), Note: health.Cut(note, maxNote)})
		}
		switch {
		case o.Result == model.Configured && s.Downgrade != "":
			told(corev1.EventTypeWarning, eventDowngrade, s.Downgrade)
		case o.Result == model.Configured && s.Target.Kind == model.KindClaim && len(s.Changes) > 0:
			told(corev1.EventTypeNormal, eventGrowing, fmt.Sprintf("claim %s grows from %s to %s", s.Target.Name, strings.Trim(s.Changes[0].From, `"`), strings.Trim(s.Changes[0].To, `"`)))
		case o.Result == model.Deleted && s.Target.Kind == model.KindPod:
			told(corev1.EventTypeWarning, eventNodeDeleted, fmt.Sprintf("node %s deleted: %s", s.Target.Name, s.Reason))
		case o.Result == model.Replaced:
			told(corev1.EventTypeNormal, eventReplaced, fmt.Sprintf("%s replaced: %s", s.Target, s.Reason))
		}
	}
	return events
}
