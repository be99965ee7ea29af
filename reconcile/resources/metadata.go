package resources

import (
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// childLabels are the labels of every child of the cache. The version is not
// one of them: a new version would then be a change of every child, and not
// every version can be a label.
func childLabels(cache *v1.ClusteredCache) map[string]string {
	labels := SelectorLabels(cache.Name)
	labels[v1.ManagedByLabel] = v1.ManagedByValue
	return labels
}

// serviceLabels are the labels of a Service of the cache; component tells the
// two Services apart.
func serviceLabels(cache *v1.ClusteredCache, component string) map[string]string {
	labels := childLabels(cache)
	labels[v1.ComponentLabel] = component
	return labels
}

// ownedBy are the owner references of every child: the cache controls it, and
// the garbage collector takes it away with the cache. A cache that is not
// stored yet has no uid to refer to; what is rendered for it has no owner.
func ownedBy(cache *v1.ClusteredCache) []*metav1ac.OwnerReferenceApplyConfiguration {
	if cache.UID == "" {
		return nil
	}
	return []*metav1ac.OwnerReferenceApplyConfiguration{
		metav1ac.OwnerReference().
			WithAPIVersion(v1.GroupVersion.String()).
			WithKind(v1.Kind).
			WithName(cache.Name).
			WithUID(cache.UID).
			WithController(true).
			WithBlockOwnerDeletion(true),
	}
}

// selectPods is SelectorLabels as a label selector.
func selectPods(cache *v1.ClusteredCache) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(cache.Name))
}
