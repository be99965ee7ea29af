package resources_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/resources"
)

// newCache is a memcached of three nodes.
func newCache() *v1.ClusteredCache {
	return &v1.ClusteredCache{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "shop", UID: "1"},
		Spec:       v1.ClusteredCacheSpec{Engine: v1.EngineMemcached, Version: "1.6.39", Size: 3},
	}
}

func statefulSet(t *testing.T, cache *v1.ClusteredCache, configHash string) *appsv1ac.StatefulSetApplyConfiguration {
	t.Helper()
	set, err := resources.StatefulSet(cache, configHash)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestMetadataOfTheCacheStaysWithIt(t *testing.T) {
	plain, labelled := newCache(), newCache()
	labelled.Labels = map[string]string{"team": "checkout", "app.kubernetes.io/version": "7", v1.InstanceLabel: "other"}
	labelled.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	before, after := statefulSet(t, plain, ""), statefulSet(t, labelled, "")
	if !reflect.DeepEqual(before, after) {
		t.Errorf("labels and annotations of the cache changed the StatefulSet:\n%s\n%s",
			asText(t, before), asText(t, after))
	}
	if got := before.Spec.Template.Labels; !reflect.DeepEqual(got, resources.SelectorLabels("c")) {
		t.Errorf("labels of the pods are %v, want the two of the selector", got)
	}
}

// TestFixedForLife: what a StatefulSet does not let change must not depend on
// anything that may.
func TestFixedForLife(t *testing.T) {
	old, changed := storedCache(), storedCache()
	changed.Spec.Version = "sha256:" + digest
	changed.Spec.Size = 7
	changed.Spec.Port = 9999
	changed.Labels = map[string]string{"helm.sh/chart": "cache-2"}
	before, after := statefulSet(t, old, "").Spec, statefulSet(t, changed, "").Spec
	for field, pair := range map[string][2]any{
		"selector":             {before.Selector, after.Selector},
		"serviceName":          {before.ServiceName, after.ServiceName},
		"podManagementPolicy":  {before.PodManagementPolicy, after.PodManagementPolicy},
		"volumeClaimTemplates": {before.VolumeClaimTemplates, after.VolumeClaimTemplates},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s changed:\n%s\n%s", field, asText(t, pair[0]), asText(t, pair[1]))
		}
	}
}

func TestConfigHashIsOnlyWrittenForAConfig(t *testing.T) {
	cache := newCache()
	if got := statefulSet(t, cache, "abc").Spec.Template.Annotations; got != nil {
		t.Errorf("without a config the pods have annotations %v", got)
	}
	cache.Spec.Config = &v1.ConfigReference{Name: "cfg"}
	got := statefulSet(t, cache, "abc").Spec.Template.Annotations
	if want := map[string]string{v1.ConfigHashAnnotation: "abc"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got annotations %v, want %v", got, want)
	}
}

func TestResourceClaimsAreHandedOn(t *testing.T) {
	cache := newCache()
	cache.Spec.Resources.Claims = []corev1.ResourceClaim{{Name: "a"}, {Name: "b", Request: "r"}}
	got := asText(t, statefulSet(t, cache, "").Spec.Template.Spec.Containers[0].Resources)
	if want := `{"claims":[{"name":"a"},{"name":"b","request":"r"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUpdateStrategyIsNotOurs(t *testing.T) {
	if got := statefulSet(t, newCache(), "").Spec.UpdateStrategy; got != nil {
		t.Errorf("updateStrategy is %s", asText(t, got))
	}
}

func TestDisruptionBudgetFollowsSize(t *testing.T) {
	cache := newCache()
	cache.Spec.Size = 1
	if got := resources.DisruptionBudget(cache); got != nil {
		t.Errorf("one node has a budget: %s", asText(t, got))
	}
	cache.Spec.Size = 2
	got := asText(t, resources.DisruptionBudget(cache).Spec)
	want := `{"selector":{"matchLabels":{"app.kubernetes.io/instance":"c","app.kubernetes.io/name":"clusteredcache"}},` +
		`"maxUnavailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow"}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestFinalizerIsAllThatIsAppliedToTheCache(t *testing.T) {
	for since, want := range map[string]string{
		"":     `"namespace":"shop","finalizers":["cache.example.com/finalizer"]}}`,
		"then": `"namespace":"shop","annotations":{"cache.example.com/draining-since":"then"},"finalizers":["cache.example.com/finalizer"]}}`,
	} {
		want = `{"kind":"ClusteredCache","apiVersion":"cache.example.com/v1","metadata":{"name":"c",` + want
		if got := asText(t, resources.Finalizer(newCache(), since)); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestACacheWithoutUIDOwnsNothing(t *testing.T) {
	cache := newCache()
	cache.UID = ""
	if got := statefulSet(t, cache, "").OwnerReferences; got != nil {
		t.Errorf("got %s", asText(t, got))
	}
}

func TestEngineDefaults(t *testing.T) {
	for engine, want := range map[v1.Engine]int32{"": 11211, v1.EngineMemcached: 11211, v1.EngineCustom: 8080, "Later": 8080} {
		cache := newCache()
		cache.Spec.Engine = engine
		if got := resources.Port(cache); got != want {
			t.Errorf("engine %q: port %d, want %d", engine, got, want)
		}
	}
}

func TestNodes(t *testing.T) {
	cache := newCache()
	cache.Spec.Port = 6379
	want := []string{"c-0.nodes-c.shop.svc:6379", "c-1.nodes-c.shop.svc:6379"}
	if got := resources.Nodes(cache, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := resources.Nodes(cache, 0); len(got) != 0 {
		t.Errorf("no nodes have addresses %v", got)
	}
}

// storedCache is a Custom engine with a volume per node.
func storedCache() *v1.ClusteredCache {
	cache := newCache()
	cache.Spec.Engine = v1.EngineCustom
	cache.Spec.Image = "registry.example.com/valkey"
	class := "fast"
	cache.Spec.Storage = &v1.StorageSpec{Size: quantity("1Gi"), StorageClassName: &class}
	return cache
}
