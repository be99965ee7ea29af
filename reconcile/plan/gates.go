package plan

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// cacheGates withhold everything except the status. The first gate that holds
// decides.
var cacheGates = []func(model.Input) (model.Hold, bool){
	suspended,
	nameInvalid,
	specInvalid,
}

// childGates withhold one child and do not affect the others.
var childGates = []func(model.Input, child) (model.Hold, bool){
	terminating,
	nameConflict,
	configMapMissing,
	invalidOverlay,
	otherSelector,
	clientsWithoutNodes,
}

func suspended(in model.Input) (model.Hold, bool) {
	return model.Hold{Gate: model.GateSuspended, Target: cacheRef(in.Cache), Class: model.Waiting, Reason: v1.ReasonSuspended,
		Message: "spec.suspend is set: children and finalizer are left as they are"}, in.Cache.Spec.Suspend
}

func nameInvalid(in model.Input) (model.Hold, bool) {
	message := v1.ValidateName(in.Cache.Name)
	return model.Hold{Gate: model.GateName, Target: cacheRef(in.Cache), Class: model.Blocked, Reason: v1.ReasonNameInvalid,
		Message: message + ": create the cache under another name and delete this one"}, message != ""
}

func specInvalid(in model.Input) (model.Hold, bool) {
	message := v1.ValidateSpec(&in.Cache.Spec)
	return model.Hold{Gate: model.GateSpec, Target: cacheRef(in.Cache), Class: model.Blocked, Reason: v1.ReasonSpecInvalid,
		Message: message}, message != ""
}

func terminating(in model.Input, c child) (model.Hold, bool) {
	if c.live == nil || c.live.GetDeletionTimestamp() == nil && !awaitsCollection(in, c) {
		return model.Hold{}, false
	}
	message := fmt.Sprintf("%s is being deleted; it is created again when it is gone", c.ref)
	if c.live.GetDeletionTimestamp() == nil {
		message = fmt.Sprintf("%s belongs to a former cache of this name and waits for the garbage collector; to keep it, annotate it with %s: %s",
			c.ref, v1.AdoptByAnnotation, in.Cache.Name)
	}
	return model.Hold{Gate: model.GateTerminating, Target: c.ref, Class: model.Waiting, Reason: v1.ReasonChildTerminating, Message: message}, true
}

// awaitsCollection reports whether the garbage collector should remove the child of
// a former cache of this name. We take it over only on request. A user who deleted
// a cache to lose its keys must not get them back.
func awaitsCollection(in model.Input, c child) bool {
	return formerOwner(c.live, in.Cache) != nil && !mayAdopt(in, c)
}

func mayAdopt(in model.Input, c child) bool {
	return c.live.GetAnnotations()[v1.AdoptByAnnotation] == in.Cache.Name
}

// foreign reports whether this cache neither controls the live object nor may take
// it over.
func foreign(in model.Input, live fields.Object) bool {
	_, held := nameConflict(in, child{live: live})
	return held
}

func nameConflict(in model.Input, c child) (model.Hold, bool) {
	if c.live == nil || metav1.IsControlledBy(c.live, in.Cache) {
		return model.Hold{}, false
	}
	hold := model.Hold{Gate: model.GateNameConflict, Target: c.ref, Class: model.Blocked, Reason: v1.ReasonNameConflict}
	switch owner := metav1.GetControllerOf(c.live); {
	case owner != nil && formerOwner(c.live, in.Cache) == nil:
		hold.Message = fmt.Sprintf("%s exists and is controlled by %s %s: delete it or rename the cache", c.ref, owner.Kind, owner.Name)
	case !mayAdopt(in, c):
		hold.Message = fmt.Sprintf("%s exists and nobody controls it: delete it, or let this cache take it over with: kubectl -n %s annotate --overwrite %s %s %s=%s",
			c.ref, c.ref.Namespace, lower(c.ref.Kind), c.ref.Name, v1.AdoptByAnnotation, in.Cache.Name)
	default:
		return model.Hold{}, false
	}
	return hold, true
}

func configMapMissing(in model.Input, c child) (model.Hold, bool) {
	if !in.Config.Missing || c.ref.Kind != model.KindStatefulSet {
		return model.Hold{}, false
	}
	return model.Hold{Gate: model.GateConfig, Target: c.ref, Class: model.Waiting, Reason: v1.ReasonConfigMapNotFound,
		Message: fmt.Sprintf("ConfigMap %s/%s (spec.config) does not exist: nodes could not start without it; create it, and the next pass continues",
			in.Cache.Namespace, in.Cache.Spec.Config.Name)}, true
}

func invalidOverlay(_ model.Input, c child) (model.Hold, bool) {
	var overlay *resources.OverlayError
	if !errors.As(c.err, &overlay) {
		return model.Hold{}, false
	}
	return model.Hold{Gate: model.GateOverlay, Target: c.ref, Class: model.Blocked, Reason: v1.ReasonInvalidOverlay,
		Message: overlay.Error()}, true
}

// clientsWithoutNodes withholds the takeover of a client Service until the cache
// has a ready node. Until then the Service would lead its clients nowhere. It does
// not withhold a Service that a former cache left, because the garbage collector
// does not wait.
func clientsWithoutNodes(in model.Input, c child) (model.Hold, bool) {
	live, ok := c.live.(*corev1.Service)
	if !ok || live.Name != in.Cache.Name || metav1.GetControllerOf(live) != nil {
		return model.Hold{}, false
	}
	selector := c.intent.(*accorev1.ServiceApplyConfiguration).Spec.Selector
	if maps.Equal(selector, live.Spec.Selector) || readyNodesWith(selector, in) {
		return model.Hold{}, false
	}
	return model.Hold{Gate: model.GateClients, Target: c.ref, Class: model.Waiting, Reason: v1.ReasonWaitingForNodes,
		Message: fmt.Sprintf("%s is taken over when the cache has a ready node: until then its clients keep the nodes that it finds now", c.ref)}, true
}

// readyNodesWith reports whether a node with these labels is ready. The node may
// belong to the cache, or to a StatefulSet that the cache takes over.
func readyNodesWith(labels map[string]string, in model.Input) bool {
	sts := in.Live.StatefulSet
	if sts == nil || foreign(in, sts) || sts.Status.ReadyReplicas == 0 {
		return false
	}
	for key, value := range labels {
		if sts.Spec.Template.Labels[key] != value {
			return false
		}
	}
	return true
}
