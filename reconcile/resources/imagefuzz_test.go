package resources_test

import (
	"strings"
	"testing"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/resources"
)

// FuzzImage: a version that the rules accept comes back from the image that it
// makes, whatever the repository; any other text does no harm.
func FuzzImage(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, version := range []string{"1.6.38", "latest", digest, "1.6@" + digest, "", ":", "@", "sha256:", "a@b:c", "\x00"} {
		for _, image := range []string{"", "memcached", "registry.example.com:5000/team/cache", "a/b:c", "/", "@" + digest} {
			f.Add(version, image)
		}
	}
	f.Fuzz(func(t *testing.T, version, image string) {
		cache := storedCache()
		cache.Spec.Version, cache.Spec.Image = version, image
		made := resources.Image(cache)
		back := resources.VersionOf(made)
		_, _ = resources.VersionOf(version), resources.VersionOf(image)
		if v1.ValidateSpec(&cache.Spec) == "" && back != version {
			t.Errorf("version %q of image %q became %q in %q", version, image, back, made)
		}
		if _, err := resources.StatefulSet(cache, ""); err != nil {
			t.Error(err)
		}
	})
}
