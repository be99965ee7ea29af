package resources_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "example.com/clusteredcache/api/v1"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func TestMemcachedArgs(t *testing.T) {
	for _, c := range []struct{ limit, user, want string }{
		{"", "", "-p 11211"},
		{"1Gi", "", "-m 819 -p 11211"},
		{"100M", "", "-m 76 -p 11211"},
		{"1Mi", "", "-m 1 -p 11211"},
		{"1", "", "-m 1 -p 11211"},
		{"0", "", "-p 11211"},
		{"8Ei", "", "-m 7036874417766 -p 11211"},
		{"1Gi", "-t 4", "-m 819 -p 11211 -t 4"},

		{"1Gi", "-m 512", "-p 11211 -m 512"},
		{"1Gi", "-m512", "-p 11211 -m512"},
		{"1Gi", "--memory-limit=512", "-p 11211 --memory-limit=512"},
		{"1Gi", "--memory-limit 512", "-p 11211 --memory-limit 512"},
		{"1Gi", "--memory-lim=512", "-p 11211 --memory-lim=512"},
		{"1Gi", "-vm 512", "-p 11211 -vm 512"},
		{"1Gi", "-vvm512", "-p 11211 -vvm512"},
		{"1Gi", "-p 1", "-m 819 -p 1"},
		{"1Gi", "-p1", "-m 819 -p1"},
		{"1Gi", "--port=1", "-m 819 --port=1"},
		{"1Gi", "--port 1", "-m 819 --port 1"},
		{"1Gi", "--po 1 -m 2", "--po 1 -m 2"},

		// Flags that only look alike, and values that only look like flags.
		{"1Gi", "-M", "-m 819 -p 11211 -M"},
		{"1Gi", "-P /tmp/pid", "-m 819 -p 11211 -P /tmp/pid"},
		{"1Gi", "--memory-file=/tmp/m", "-m 819 -p 11211 --memory-file=/tmp/m"},
		{"1Gi", "--pidfile=/p", "-m 819 -p 11211 --pidfile=/p"},
		{"1Gi", "-o modern,no_m", "-m 819 -p 11211 -o modern,no_m"},
		{"1Gi", "-omodern", "-m 819 -p 11211 -omodern"},
		{"1Gi", "-D -m -p 1", "-m 819 -D -m -p 1"},
		{"1Gi", "-- -m 1", "-m 819 -p 11211 -- -m 1"},
		{"1Gi", "-", "-m 819 -p 11211 -"},
		{"1Gi", "--", "-m 819 -p 11211 --"},
		{"1Gi", "-m", "-p 11211 -m"},
	} {
		cache := newCache()
		if c.limit != "" {
			cache.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity(c.limit)}
		}
		cache.Spec.Args = strings.Fields(c.user)
		got := statefulSet(t, cache, "").Spec.Template.Spec.Containers[0].Args
		if strings.Join(got, " ") != c.want {
			t.Errorf("limit %q, args %q: got %q, want %q", c.limit, c.user, got, c.want)
		}
	}
}

func TestCustomArgsAreTheUsersAlone(t *testing.T) {
	cache := newCache()
	cache.Spec.Engine = v1.EngineCustom
	cache.Spec.Args = []string{"-m", "x"}
	cache.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("1Gi")}
	got := statefulSet(t, cache, "").Spec.Template.Spec.Containers[0].Args
	if !slices.Equal(got, []string{"-m", "x"}) {
		t.Errorf("got %q", got)
	}
}
