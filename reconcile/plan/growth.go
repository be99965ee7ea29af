package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// NeedsVolumes reports whether a cache wants larger volumes than its StatefulSet
// has.
func NeedsVolumes(in model.Input) bool {
	sts := in.Live.Owned(in.Cache).StatefulSet
	return sts != nil && sts.DeletionTimestamp == nil && in.Cache.DeletionTimestamp == nil && wantsGrowth(in.Cache.Spec.Storage, liveStorage(sts))
}

// wantsGrowth reports whether the size grows and nothing else changes.
func wantsGrowth(want, live *v1.StorageSpec) bool {
	return want != nil && live != nil && want.Size.Cmp(live.Size) > 0 && className(want) == className(live)
}

// grow makes volumes larger. A StatefulSet's claim template cannot change, so the
// last step replaces the StatefulSet and keeps its nodes:
//
//	claims ask for more ──► the storage system has grown them ──► the StatefulSet is replaced
//
// Until then everything else is planned with the size in the live template.
func (d *draft) grow() {
	in := d.in
	if in.Volumes == nil || !NeedsVolumes(in) || d.holds(model.KindStatefulSet) {
		return
	}
	sts, want := in.Live.StatefulSet, in.Cache.Spec.Storage.Size
	target := refOf(model.KindStatefulSet, sts)
	if hold, held := cannotGrow(in, target); held {
		d.Holds = append(d.Holds, hold)
		return
	}
	resizing := model.Hold{Gate: model.GateGrowth, Target: target, Partial: true, Class: model.Waiting, Reason: v1.ReasonVolumeResizing}
	if d.changesPods() {
		resizing.Message = fmt.Sprintf("volumes grow to %s when the pod template has been applied", want.String())
		d.Holds = append(d.Holds, resizing)
		return
	}
	steps := growClaims(in)
	d.Steps = append(d.Steps, steps...)
	switch waiting := grown(in); {
	case len(steps) > 0 || waiting != "":
		resizing.Message = cmp.Or(waiting, fmt.Sprintf("volumes grow to %s", want.String()))
		d.Holds = append(d.Holds, resizing)
	case !d.changes(target):
		d.replace(target)
	}
}

// changes reports whether the plan writes to an object.
func (d *draft) changes(target model.Ref) bool {
	return slices.ContainsFunc(d.Steps, func(s model.Step) bool { return s.Target == target })
}

// cannotGrow withholds the growth if the class of a claim does not let its volumes
// grow.
func cannotGrow(in model.Input, target model.Ref) (model.Hold, bool) {
	for _, claim := range in.Volumes.Claims {
		why := ""
		switch name := claim.Spec.StorageClassName; {
		case !tooSmall(in, claim):
			continue
		case name == nil || *name == "":
			why = fmt.Sprintf("claim %s has no StorageClass, so nobody can grow its volume", claim.Name)
		case in.Volumes.Classes[*name] == model.ClassMissing:
			why = fmt.Sprintf("StorageClass %s of claim %s does not exist any more", *name, claim.Name)
		case in.Volumes.Classes[*name] == model.ClassFixed:
			why = fmt.Sprintf("StorageClass %s does not let volumes grow (allowVolumeExpansion)", *name)
		default:
			continue
		}
		from, to := liveStorage(in.Live.StatefulSet).Size, in.Cache.Spec.Storage.Size
		return model.Hold{Gate: model.GateImmutable, Target: target, Partial: true, Class: model.Blocked, Reason: v1.ReasonImmutableField,
			Message: fmt.Sprintf("spec.storage.size cannot change from %s to %s: %s. Set it back, or let the class grow volumes",
				from.String(), to.String(), why)}, true
	}
	return model.Hold{}, false
}

func tooSmall(in model.Input, claim *corev1.PersistentVolumeClaim) bool {
	asks := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return asks.Cmp(in.Cache.Spec.Storage.Size) < 0
}

// growClaims plans that every bound claim asks for the new size. The API server
// refuses to change a claim that is not bound.
func growClaims(in model.Input) []model.Step {
	var steps []model.Step
	want := in.Cache.Spec.Storage.Size
	for _, claim := range in.Volumes.Claims {
		if !tooSmall(in, claim) || claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
			continue
		}
		intent := accorev1.PersistentVolumeClaim(claim.Name, claim.Namespace).
			WithSpec(accorev1.PersistentVolumeClaimSpec().WithResources(accorev1.VolumeResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceStorage: want.DeepCopy()})))
		steps = append(steps, model.Step{
			Action: model.ActionChange, Target: refOf(model.KindClaim, claim),
			Intent: intent, Live: claim, Changes: fields.Compare(intent, claim, ""), Reason: "spec.storage.size has grown",
		})
	}
	return steps
}

// grown returns how many volumes of the nodes have grown, or "" if all have. Claims
// of former nodes do not count: without a pod their file systems do not grow.
func grown(in model.Input) string {
	done, all, why := 0, 0, ""
	for _, claim := range in.Volumes.Claims {
		if resources.Ordinal(claim.Name) >= int(*in.Live.StatefulSet.Spec.Replicas) {
			continue
		}
		all++
		has := claim.Status.Capacity[corev1.ResourceStorage]
		switch {
		case claim.Status.Phase != corev1.ClaimBound:
			why = fmt.Sprintf("; claim %s is not bound to a volume yet", claim.Name)
		case has.Cmp(in.Cache.Spec.Storage.Size) < 0:
			if c := resizeError(claim); c != "" {
				why = fmt.Sprintf("; claim %s: %s", claim.Name, c)
			}
		default:
			done++
		}
	}
	if missing := int(*in.Live.StatefulSet.Spec.Replicas) - all; done == all && missing <= 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d volumes have grown to %s%s", done, *in.Live.StatefulSet.Spec.Replicas, wantedSize(in), why)
}

func wantedSize(in model.Input) string { return in.Cache.Spec.Storage.Size.String() }

// resizeError returns why the storage system does not grow a claim.
func resizeError(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		switch c.Type {
		case corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
			corev1.PersistentVolumeClaimFileSystemResizePending:
			if c.Status == corev1.ConditionTrue && c.Message != "" {
				return health.Plain(c.Message)
			}
		}
	}
	return ""
}

// replace plans to replace the StatefulSet and keep its nodes. They stay as they
// are only if the new pod template is exactly the live one. Fields that others set
// would be lost, so they prevent the replacement.
func (d *draft) replace(target model.Ref) {
	in := d.in
	sts := in.Live.StatefulSet
	live := liveStorage(sts).Size
	if lost := fields.NotOurs(sts); len(lost) > 0 {
		d.Holds = append(d.Holds, model.Hold{Gate: model.GateImmutable, Target: target, Partial: true, Class: model.Blocked, Reason: v1.ReasonImmutableField,
			Message: fmt.Sprintf("the volumes have grown to %s; the claim template of %s stays at %s, because a replaced StatefulSet would lose what others set in it: %s. "+
				"Remove that, and the next pass continues", wantedSize(in), target, live.String(), strings.Join(lost, ", "))})
		return
	}
	intent, err := resources.StatefulSet(in.Cache, in.Config.Hash)
	if err != nil {
		return // childrenOf met the same error, so invalidOverlay has withheld the child
	}
	intent.Spec.ServiceName, intent.Spec.PodManagementPolicy = &sts.Spec.ServiceName, &sts.Spec.PodManagementPolicy
	d.Steps = append(d.Steps, model.Step{
		Action: model.ActionReplace, Target: target, Intent: intent, Live: sts, Changes: []fields.Change{templateChange(live, in.Cache.Spec.Storage.Size)},
		Reason: "its claim template cannot change; nodes and claims stay as they are",
	})
}

func templateChange(from, to resource.Quantity) fields.Change {
	return fields.Change{Path: "spec.volumeClaimTemplates[" + v1.ClaimName + "].spec.resources.requests.storage", From: compact(from), To: compact(to)}
}
