package resources_test

import (
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/resources"
)

var digest = strings.Repeat("0123456789abcdef", 4)

func TestImageAndItsVersion(t *testing.T) {
	for _, c := range []struct{ repository, version, want string }{
		{"", "1.6.39", "docker.io/library/memcached:1.6.39"},
		{"", "sha256:" + digest, "docker.io/library/memcached@sha256:" + digest},
		{"a", "1.2", "a:1.2"},
		{"a", "7.2.4@sha256:" + digest, "a:7.2.4@sha256:" + digest},
		{"registry:5000/a/b", "1.2@sha256:" + digest, "registry:5000/a/b:1.2@sha256:" + digest},
		{"registry:5000/a/b", "sha256:" + digest, "registry:5000/a/b@sha256:" + digest},
		{"a", "_x", "a:_x"},
		{"a", strings.Repeat("t", 128), "a:" + strings.Repeat("t", 128)},
		{"a", "sha256", "a:sha256"},
	} {
		cache := newCache()
		cache.Spec.Image, cache.Spec.Version = c.repository, c.version
		if got := resources.Image(cache); got != c.want {
			t.Errorf("Image(%q, %q) = %q, want %q", c.repository, c.version, got, c.want)
		}
		if got := resources.VersionOf(c.want); got != c.version {
			t.Errorf("VersionOf(%q) = %q, want %q", c.want, got, c.version)
		}
		if got := resources.RepositoryOf(c.want); c.repository != "" && got != c.repository {
			t.Errorf("RepositoryOf(%q) = %q, want %q", c.want, got, c.repository)
		}
	}
}

func TestVersionOfAnImageWithoutOne(t *testing.T) {
	for _, image := range []string{"", "a", "registry:5000/a", "registry:5000/a/b"} {
		if got := resources.VersionOf(image); got != "" {
			t.Errorf("VersionOf(%q) = %q, want none", image, got)
		}
		if got := resources.RepositoryOf(image); got != image {
			t.Errorf("RepositoryOf(%q) = %q", image, got)
		}
	}
}
