package resources

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// DisruptionBudget returns the budget by which a drain of cluster machines removes
// only one node of the cache at a time. A node that is not ready may always go,
// because it serves nothing and would block the drain as long as it is broken. It
// returns nil for a cache of one node, whose budget could only forbid the drain or
// have no effect.
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
