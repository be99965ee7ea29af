package resources

import (
	"strings"

	v1 "example.com/clusteredcache/api/v1"
)

// Image returns the image of the nodes: the repository joined with the version. A
// version is a tag, a tag with a digest, or only a digest.
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

// VersionOf returns the version of an image as spec.version would have it. It is
// empty for an image without tag and digest.
func VersionOf(image string) string {
	// A ':' before the last '/' belongs to the port of a registry.
	name := image[strings.LastIndex(image, "/")+1:]
	end := strings.IndexAny(name, ":@")
	if end < 0 {
		return ""
	}
	return name[end+1:]
}

// RepositoryOf returns an image without its version.
func RepositoryOf(image string) string {
	return strings.TrimRight(strings.TrimSuffix(image, VersionOf(image)), ":@")
}
