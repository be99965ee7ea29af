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

// These are the reasons of Events about a step. Other Events are about a new reason
// in the status.
const (
	eventDowngrade   = "Downgrade"
	eventNodeDeleted = "NodeDeleted"
	eventReplaced    = "StatefulSetReplaced"
	eventGrowing     = "VolumeGrowing"
)

// maxNote is the API server's limit for the note of an Event, in bytes.
const maxNote = 1024

// Events returns the Events of a pass over one cache, for a person who reads about
// the cache later. They name a new reason in its status, and steps that may
// surprise that person. A cache that stays as it is gets no Event.
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

// unimportant has the reasons that last only for a moment. The next reason gets an
// Event.
var unimportant = map[string]bool{v1.ReasonNotObserved: true, v1.ReasonPending: true}

// troubles has the reasons that deserve a warning although the cache may still
// settle.
var troubles = map[string]bool{
	v1.ReasonImagePullBackOff: true, v1.ReasonCrashLoopBackOff: true, v1.ReasonOOMKilled: true,
	v1.ReasonCreateContainerConfigError: true, v1.ReasonUnschedulable: true, v1.ReasonVolumeNotBound: true,
	v1.ReasonPodNotCreated: true, v1.ReasonConfigMapNotFound: true, v1.ReasonApplyFailed: true,
}

func stepEvents(outcomes []model.Outcome) []model.Event {
	var events []model.Event
	for _, o := range outcomes {
		s := o.Step
		report := func(kind, reason, note string) {
			events = append(events, model.Event{Type: kind, Reason: reason, Action: strings.ToUpper(string(s.Action[:1])) + string(s.Action[1:]), Note: health.Cut(note, maxNote)})
		}
		switch {
		case o.Result == model.Configured && s.Downgrade != "":
			report(corev1.EventTypeWarning, eventDowngrade, s.Downgrade)
		case o.Result == model.Configured && s.Target.Kind == model.KindClaim && len(s.Changes) > 0:
			report(corev1.EventTypeNormal, eventGrowing, fmt.Sprintf("claim %s grows from %s to %s", s.Target.Name, strings.Trim(s.Changes[0].From, `"`), strings.Trim(s.Changes[0].To, `"`)))
		case o.Result == model.Deleted && s.Target.Kind == model.KindPod:
			report(corev1.EventTypeWarning, eventNodeDeleted, fmt.Sprintf("node %s deleted: %s", s.Target.Name, s.Reason))
		case o.Result == model.Replaced:
			report(corev1.EventTypeNormal, eventReplaced, fmt.Sprintf("%s replaced: %s", s.Target, s.Reason))
		}
	}
	return events
}
