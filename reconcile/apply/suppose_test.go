package apply

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// owned is a cache whose labels kubectl applied on the server: team alone, and
// shared together with another manager. The label edited was set by `kubectl label`.
const owned = `[
	{"manager": "kubectl", "operation": "Apply", "apiVersion": "cache.example.com/v1", "time": "2026-11-30T11:00:00Z", "fieldsType": "FieldsV1",
	 "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}, "f:shared": {}}, "f:annotations": {"f:note": {}}}, "f:spec": {"f:size": {}}}},
	{"manager": "argocd", "operation": "Apply", "apiVersion": "cache.example.com/v1", "time": "2026-11-30T11:00:00Z", "fieldsType": "FieldsV1",
	 "fieldsV1": {"f:metadata": {"f:labels": {"f:shared": {}}}}},
	{"manager": "kubectl", "operation": "Update", "apiVersion": "cache.example.com/v1", "time": "2026-11-30T11:00:00Z", "fieldsType": "FieldsV1",
	 "fieldsV1": {"f:metadata": {"f:labels": {"f:edited": {}}}}}]`

// TestMerge checks which labels and annotations an apply of a manifest leaves.
func TestMerge(t *testing.T) {
	type names = map[string]string
	tests := []struct {
		name, wrong      string
		field            string
		lastApplied      string // the annotation of client-side apply
		managed          string
		stored, manifest names
		want             names
	}{
		{"set by another tool", "a diff would announce the loss of a label that stays",
			"labels", `{"metadata":{"labels":{"a":"1"}}}`, "", names{"a": "1", "b": "1"}, names{"a": "1"}, names{"a": "1", "b": "1"}},
		{"applied on the client and omitted now", "a diff would not show that the label goes",
			"labels", `{"metadata":{"labels":{"a":"1","b":"1"}}}`, "", names{"a": "1", "b": "1"}, names{"a": "1"}, names{"a": "1"}},
		{"applied on the client, changed by somebody, omitted now", "kubectl removes it whatever its value",
			"labels", `{"metadata":{"labels":{"b":"1"}}}`, "", names{"b": "2"}, nil, names{}},
		{"applied on the server and omitted now", "a diff would not show that the label goes",
			"labels", "", owned, names{"team": "a"}, nil, names{}},
		{"applied on the server by two", "a diff would announce the loss of a label that stays",
			"labels", "", owned, names{"shared": "a"}, nil, names{"shared": "a"}},
		{"updated on the server by kubectl", "an update does not own a label in the sense of apply, so it stays",
			"labels", "", owned, names{"edited": "a"}, nil, names{"edited": "a"}},
		{"an annotation applied on the server", "only labels would be found",
			"annotations", "", owned, names{"note": "a", "team": "a"}, nil, names{"team": "a"}},
		{"a label of the same name as an annotation", "labels and annotations would be mixed up",
			"annotations", `{"metadata":{"labels":{"a":"1"}}}`, "", names{"a": "1"}, nil, names{"a": "1"}},
		{"another value", "the value of the manifest must win",
			"labels", `{"metadata":{"labels":{"a":"1"}}}`, "", names{"a": "1"}, names{"a": "2"}, names{"a": "2"}},
		{"the annotation is not JSON", "a broken annotation would remove everything",
			"labels", `{"metadata":`, "", names{"a": "1"}, names{"b": "1"}, names{"a": "1", "b": "1"}},
		{"labels are not an object", "a broken annotation would be a panic",
			"labels", `{"metadata":{"labels":"a"}}`, "", names{"a": "1"}, nil, names{"a": "1"}},
		{"no labels so far", "the first labels would be lost, or be a panic",
			"labels", "", "", nil, names{"a": "1"}, names{"a": "1"}},
		{"no labels at all", "an empty map would look like a change", "labels", "", "", nil, nil, nil},
	}
	for _, test := range tests {
		cache := &v1.ClusteredCache{}
		if test.lastApplied != "" {
			cache.Annotations = names{corev1.LastAppliedConfigAnnotation: test.lastApplied}
		}
		if test.managed != "" {
			if err := json.Unmarshal([]byte(test.managed), &cache.ManagedFields); err != nil {
				t.Fatal(err)
			}
		}
		stored := maps.Clone(test.stored)
		got := lastApplied(cache).merge(test.field, stored, test.manifest)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s:\n%s", test.name, test.wrong, diff)
		}
		if !maps.Equal(stored, test.stored) {
			t.Errorf("%s: the stored object was changed: %v", test.name, stored)
		}
	}
}

// TestLastAppliedSize checks whether kubectl set the size. If it did not, a size
// that the manifest omits belongs to an autoscaler and stays.
func TestLastAppliedSize(t *testing.T) {
	for annotation, want := range map[string]bool{
		`{"spec":{"size":3}}`:      true,
		`{"spec":{"size":0}}`:      true,
		`{"spec":{"version":"1"}}`: false,
		`{"spec":`:                 false,
		"":                         false,
	} {
		cache := &v1.ClusteredCache{}
		cache.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: annotation}
		if got := lastApplied(cache).Spec.Size != nil; got != want {
			t.Errorf("%q: got %v, want %v", annotation, got, want)
		}
	}
}
