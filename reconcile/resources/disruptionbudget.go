package resources

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// DisruptionBudget lets a drain of cluster machines take one node of the cache
// at a time. A node that is not ready may always go: it serves nothing, and
// would otherwise block the drain for as long as it stays broken. A cache of
// one node has no budget: it could only forbid the drain, or say nothing.
func DisruptionBudget(cache *v1.ClusteredCache) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	if cache.Spec.Size <= 1 {
		return nil
	}
	return policyv1ac.PodDisruptionBudget(cache.Name, cache.Namespace).
		WithLabels(childLabels(cache)).
		WithOwnerReferences(ownedBy(cache)...).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(selectPods(cache)))
}
