package resources

import (
	v1 "example.com/clusteredcache/api/v1"
	cachev1ac "example.com/clusteredcache/api/v1/applyconfiguration/api/v1"
)

// Finalizer returns the only apply configuration that we ever send to the main
// endpoint of a ClusteredCache. Another one under the same field manager would give
// up what this one owns: the finalizer. drainingSince is the time since which a
// cache that is being deleted is drained. Otherwise it is empty.
func Finalizer(cache *v1.ClusteredCache, drainingSince string) *cachev1ac.ClusteredCacheApplyConfiguration {
	intent := cachev1ac.ClusteredCache(cache.Name, cache.Namespace).
		WithFinalizers(v1.Finalizer)
	if drainingSince != "" {
		intent.WithAnnotations(map[string]string{v1.DrainingSinceAnnotation: drainingSince})
	}
	return intent
}
