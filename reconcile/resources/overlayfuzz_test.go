package resources_test

import (
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/resources"
)

// FuzzOverlay: whatever stands in spec.podTemplate, it is refused by an
// OverlayError or gives a StatefulSet that the server can merge and whose pods
// still are the cache's.
func FuzzOverlay(f *testing.F) {
	seed := func(overlay string) {
		raw, err := yaml.YAMLToJSON([]byte(overlay))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, c := range overlayRefusals {
		seed(c.overlay)
	}
	for _, c := range overlayMerges {
		seed(c.overlay)
	}
	converter := serverTypes(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // cannot be stored
		}
		cache := storedCache()
		cache.Spec.Config = &v1.ConfigReference{Name: "cfg"}
		cache.Spec.PodTemplate = &runtime.RawExtension{Raw: raw}
		set, err := resources.StatefulSet(cache, "abc")
		if err != nil {
			var fault *resources.OverlayError
			if !errors.As(err, &fault) {
				t.Errorf("the error is a %T", err)
			}
			return
		}
		template := set.Spec.Template
		for label, value := range resources.SelectorLabels("c") {
			if template.Labels[label] != value {
				t.Errorf("label %s is %q", label, template.Labels[label])
			}
		}
		if own := template.Spec.Containers[0]; *own.Name != v1.ContainerName || *own.Image != resources.Image(cache) {
			t.Errorf("our container is %s", asText(t, own))
		}
		object := unstructuredOf(t, set)
		if _, err := converter.ObjectToTyped(object); err != nil {
			t.Error(err)
		}
		forEachValue(object.Object, "", func(path string, value any) {
			if value == nil {
				t.Errorf("%s is null", path)
			}
		})
	})
}
