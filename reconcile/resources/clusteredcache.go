package resources

import (
	v1 "example.com/clusteredcache/api/v1"
	cachev1ac "example.com/clusteredcache/api/v1/applyconfiguration/api/v1"
)

// Finalizer is the one shape in which the main endpoint of a ClusteredCache is
// ever applied. A second shape under the same field manager would give up what
// this one owns: the finalizer. drainingSince is empty, or since when the cache,
// which is being deleted, is drained.
func Finalizer(cache *v1.ClusteredCache, drainingSince string) *cachev1ac.ClusteredCacheApplyConfiguration {
	intent := cachev1ac.ClusteredCache(cache.Name, cache.Namespace).
		WithFinalizers(v1.Finalizer)
	if drainingSince != "" {
		intent.WithAnnotations(map[string]string{v1.DrainingSinceAnnotation: drainingSince})
	}
	return intent
}
