package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// The API server refuses a whole write when one immutable field in it differs. So a
// field that cannot change keeps its live value and gets a Hold. The rest is
// planned as usual.

// holdBackStorage returns the cache with the storage of the live claim template,
// which the StatefulSet cannot change. It changes the spec, so that volumes, mounts
// and claim template agree.
func holdBackStorage(in model.Input) (*v1.ClusteredCache, []model.Hold) {
	sts := in.Live.StatefulSet
	if sts == nil || foreign(in, sts) {
		return in.Cache, nil
	}
	want, live := in.Cache.Spec.Storage, liveStorage(sts)
	path, from, to := storageDifference(want, live)
	if path == "" {
		return in.Cache, nil
	}
	cache := in.Cache.DeepCopy()
	if live != nil && want != nil {
		live.Retain = want.Retain
	}
	cache.Spec.Storage = live
	if wantsGrowth(want, live) && metav1.IsControlledBy(sts, in.Cache) {
		return cache, nil // grow makes the volumes larger
	}
	return cache, []model.Hold{{
		Gate: model.GateImmutable, Partial: true, Class: model.Blocked, Reason: v1.ReasonImmutableField,
		Target: refOf(model.KindStatefulSet, sts),
		Message: fmt.Sprintf("%s cannot change from %s to %s on an existing StatefulSet: set it back, or %s",
			path, from, to, wayOut(path, sts)),
	}}
}

// wayOut returns the command after which the next pass recreates the StatefulSet.
// Running nodes can stay if they have the same volumes afterwards.
func wayOut(path string, sts *appsv1.StatefulSet) string {
	if path == "spec.storage" {
		return fmt.Sprintf("replace the StatefulSet with all its nodes (they restart at the same time, empty) with: kubectl -n %s delete statefulset %s", sts.Namespace, sts.Name)
	}
	return "replace the StatefulSet and keep its nodes and claims as they are with: " + deleteCommand(refOf(model.KindStatefulSet, sts))
}

func liveStorage(sts *appsv1.StatefulSet) *v1.StorageSpec {
	for _, claim := range sts.Spec.VolumeClaimTemplates {
		if claim.Name != v1.ClaimName {
			continue
		}
		s := &v1.StorageSpec{
			Size:             claim.Spec.Resources.Requests[corev1.ResourceStorage],
			StorageClassName: claim.Spec.StorageClassName,
			Retain:           v1.RetainPolicyRetain,
		}
		if p := sts.Spec.PersistentVolumeClaimRetentionPolicy; p != nil && p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
			s.Retain = v1.RetainPolicyDelete
		}
		return s
	}
	return nil
}

func storageDifference(want, live *v1.StorageSpec) (path, from, to string) {
	switch {
	case want == nil && live == nil:
		return "", "", ""
	case live == nil:
		return "spec.storage", "none", want.Size.String()
	case want == nil:
		return "spec.storage", live.Size.String(), "none"
	case className(want) != className(live):
		return "spec.storage.storageClassName", className(live), className(want)
	case want.Size.Cmp(live.Size) != 0:
		return "spec.storage.size", live.Size.String(), want.Size.String()
	}
	return "", "", ""
}

func className(s *v1.StorageSpec) string {
	if s.StorageClassName == nil {
		return "the default class"
	}
	return *s.StorageClassName
}

// otherSelector withholds a StatefulSet whose selector is not ours. The selector
// decides which pods belong to the cache, so we write nothing to such an object.
func otherSelector(_ model.Input, c child) (model.Hold, bool) {
	live, ok := c.live.(*appsv1.StatefulSet)
	if !ok {
		return model.Hold{}, false
	}
	want := c.intent.(*acappsv1.StatefulSetApplyConfiguration)
	if fields.SameContent(want.Spec.Selector, live.Spec.Selector) {
		return model.Hold{}, false
	}
	return model.Hold{Gate: model.GateImmutable, Target: c.ref, Class: model.Blocked, Reason: v1.ReasonImmutableField,
		Message: fmt.Sprintf("%s: spec.selector is %s but must be %s, and Kubernetes does not allow changing it. Use another cache name, or delete the StatefulSet (all nodes and keys are lost); the next pass recreates it",
			c.ref, compact(live.Spec.Selector), compact(want.Spec.Selector))}, true
}

// keepImmutable puts the live value of each field that cannot change into the
// intent, and returns a Hold for it. The intent was built for this plan, so
// keepImmutable may change it.
func keepImmutable(c child) []model.Hold {
	var kept []fields.Change
	switch live := c.live.(type) {
	case *appsv1.StatefulSet:
		spec := c.intent.(*acappsv1.StatefulSetApplyConfiguration).Spec
		if *spec.ServiceName != live.Spec.ServiceName {
			kept = append(kept, fields.Change{Path: "spec.serviceName", From: live.Spec.ServiceName, To: *spec.ServiceName})
			spec.ServiceName = &live.Spec.ServiceName
		}
		// An adopted StatefulSet may be OrderedReady. It gets no Hold, because the
		// spec of a cache does not name the policy. Its nodes start one after the
		// other, and unstick frees its rollouts.
		spec.PodManagementPolicy = &live.Spec.PodManagementPolicy
		if !fields.SameContent(&spec.VolumeClaimTemplates, &live.Spec.VolumeClaimTemplates) {
			kept = append(kept, fields.Change{Path: "spec.volumeClaimTemplates", From: claimNames(live), To: "those of spec.storage"})
			spec.VolumeClaimTemplates = claimTemplates(live)
		}
	case *corev1.Service:
		spec := c.intent.(*accorev1.ServiceApplyConfiguration).Spec
		if spec.ClusterIP != nil && *spec.ClusterIP != live.Spec.ClusterIP {
			kept = append(kept, fields.Change{Path: "spec.clusterIP", From: live.Spec.ClusterIP, To: *spec.ClusterIP})
			spec.ClusterIP = &live.Spec.ClusterIP
		}
	}
	cost := ""
	if c.ref.Kind == model.KindStatefulSet {
		cost = " and keep its nodes (those with another template restart one by one)"
	}
	holds := make([]model.Hold, 0, len(kept))
	for _, change := range kept {
		holds = append(holds, model.Hold{Gate: model.GateImmutable, Target: c.ref, Partial: true, Class: model.Blocked, Reason: v1.ReasonImmutableField,
			Message: fmt.Sprintf("%s: %s is %s and cannot be changed to %s; the other fields are applied. To let the next pass recreate it%s: %s",
				c.ref, change.Path, change.From, change.To, cost, deleteCommand(c.ref))})
	}
	return holds
}

// deleteCommand returns the command that deletes a child but none of the nodes.
func deleteCommand(r model.Ref) string {
	command := fmt.Sprintf("kubectl -n %s delete %s %s", r.Namespace, lower(r.Kind), r.Name)
	if r.Kind == model.KindStatefulSet {
		command += " --cascade=orphan"
	}
	return command
}

func claimNames(sts *appsv1.StatefulSet) string {
	names := make([]string, 0, len(sts.Spec.VolumeClaimTemplates))
	for _, claim := range sts.Spec.VolumeClaimTemplates {
		names = append(names, claim.Name)
	}
	return "[" + strings.Join(names, " ") + "]"
}

// claimTemplates returns the live list in the form of an intent. The list is one
// value for the API server, so an apply of the same list changes nothing.
func claimTemplates(sts *appsv1.StatefulSet) []accorev1.PersistentVolumeClaimApplyConfiguration {
	var list []accorev1.PersistentVolumeClaimApplyConfiguration
	raw, _ := json.Marshal(sts.Spec.VolumeClaimTemplates)
	_ = json.Unmarshal(raw, &list) // both types have the same JSON
	for i := range list {
		list[i].Status = nil
	}
	return list
}

func compact(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

func lower(kind model.Kind) string { return strings.ToLower(string(kind)) }
