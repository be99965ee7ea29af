package resources

import (
	"strings"

	v1 "example.com/clusteredcache/api/v1"
)

// Image is what the nodes run: the repository joined with the version, which
// is a tag, a tag with a digest, or a digest alone.
func Image(cache *v1.ClusteredCache) string {
	repository := cache.Spec.Image
	if repository == "" {
		repository = profileOf(cache).image
	}
	separator := ":"
	if strings.HasPrefix(cache.Spec.Version, "sha256:") {
		separator = "@"
	}
	return repository + separator + cache.Spec.Version
}

// VersionOf is the version part of an image, in the spelling of spec.version;
// empty for an image that names neither tag nor digest.
func VersionOf(image string) string {
	// A ':' before the last '/' belongs to the port of a registry.
	name := image[strings.LastIndex(image, "/")+1:]
	end := strings.IndexAny(name, ":@")
	if end < 0 {
		return ""
	}
	return name[end+1:]
}

// RepositoryOf is what an image is without its version.
func RepositoryOf(image string) string {
	return strings.TrimRight(strings.TrimSuffix(image, VersionOf(image)), ":@")
}
