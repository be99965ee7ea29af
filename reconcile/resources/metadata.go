package resources

import (
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// childLabels returns the labels of every child of the cache. They do not include
// the version. A new version would then change every child, and some versions cannot
// be a label.
func childLabels(cache *v1.ClusteredCache) map[string]string {
	labels := SelectorLabels(cache.Name)
	labels[v1.ManagedByLabel] = v1.ManagedByValue
	return labels
}

// serviceLabels returns the child labels and the component, which distinguishes the
// two Services and the Jobs of hooks.
func serviceLabels(cache *v1.ClusteredCache, component string) map[string]string {
	labels := childLabels(cache)
	labels[v1.ComponentLabel] = component
	return labels
}

// ownedBy returns the owner references of every child. The cache controls the child,
// and the garbage collector removes the child with the cache. A child of a cache
// that is not stored yet has no owner, because the cache has no uid.
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

// selectPods returns SelectorLabels as a label selector.
func selectPods(cache *v1.ClusteredCache) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(cache.Name))
}
