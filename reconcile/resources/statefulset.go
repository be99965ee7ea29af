package resources

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// StatefulSet returns the StatefulSet that runs the nodes. configHash is the
// ConfigHash of the ConfigMap that spec.config names, or empty without a ConfigMap.
// The error is always an *OverlayError: spec.podTemplate cannot be merged.
//
// We do not own the update strategy, so that others can set a partition or OnDelete.
// The policy is Parallel, because nodes of a cache do not wait for each other.
func StatefulSet(cache *v1.ClusteredCache, configHash string) (*appsv1ac.StatefulSetApplyConfiguration, error) {
	template, err := podTemplate(cache, configHash)
	if err != nil {
		return nil, err
	}
	spec := appsv1ac.StatefulSetSpec().
		WithReplicas(cache.Spec.Size).
		WithServiceName(NodesServiceName(cache.Name)).
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithSelector(selectPods(cache)).
		WithTemplate(template)
	if r := cache.Spec.Rollout; r != nil && r.MinReadySeconds > 0 {
		spec.WithMinReadySeconds(r.MinReadySeconds)
	}
	if cache.Spec.Storage != nil {
		spec.WithVolumeClaimTemplates(claimTemplate(cache)).
			WithPersistentVolumeClaimRetentionPolicy(claimRetention(cache.Spec.Storage))
	}
	return appsv1ac.StatefulSet(cache.Name, cache.Namespace).
		WithLabels(childLabels(cache)).
		WithOwnerReferences(ownedBy(cache)...).
		WithSpec(spec), nil
}

// claimTemplate returns the template of the claims, which give every node its own
// volume. It has only the two labels that never change, because Kubernetes refuses
// every change of a StatefulSet's claim templates.
func claimTemplate(cache *v1.ClusteredCache) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	storage := cache.Spec.Storage
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: storage.Size.DeepCopy()}))
	if storage.StorageClassName != nil {
		spec.WithStorageClassName(*storage.StorageClassName)
	}
	claim := &corev1ac.PersistentVolumeClaimApplyConfiguration{}
	return claim.
		WithName(v1.ClaimName).
		WithLabels(SelectorLabels(cache.Name)).
		WithSpec(spec)
}

// claimRetention returns what happens to claims when nodes go. The claims of nodes
// that a smaller size removes are always kept, because someone may have lowered the
// size by mistake.
func claimRetention(storage *v1.StorageSpec) *appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicyApplyConfiguration {
	whenDeleted := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if storage.Retain == v1.RetainPolicyDelete {
		whenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
		WithWhenDeleted(whenDeleted).
		WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
}
