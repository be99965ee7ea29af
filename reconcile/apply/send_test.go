package apply

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// unencodable is an intent that JSON cannot express.
type unencodable struct{ C chan int }

func (unencodable) IsApplyConfiguration() {}

// TestBody checks the request of an apply: the intent with the preconditions.
func TestBody(t *testing.T) {
	set := func() *acappsv1.StatefulSetApplyConfiguration { return acappsv1.StatefulSet("cache", "shop") }
	tests := []struct {
		name, wrong string
		intent      runtime.ApplyConfiguration
		uid         types.UID
		version     string
		want        string // "" means an error
	}{
		{"an existing object", "the apply could change another object of this name, or undo a newer write",
			set(), "u-1", "7",
			`{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"cache","namespace":"shop","uid":"u-1","resourceVersion":"7"}}`},
		{"a missing object", "the server refuses a uid in a create",
			set(), "", createOnly,
			`{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"cache","namespace":"shop","resourceVersion":"1"}}`},
		{"other metadata", "the apply would remove the labels that we own",
			set().WithLabels(map[string]string{"a": "<&>"}), "u-1", "7",
			`{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"cache","namespace":"shop","labels":{"a":"<&>"},"uid":"u-1","resourceVersion":"7"}}`},
		{"a large number", "a number above 2^53 would be rounded on its way through a float",
			set().WithSpec(acappsv1.StatefulSetSpec().WithTemplate(accorev1.PodTemplateSpec().WithSpec(
				accorev1.PodSpec().WithActiveDeadlineSeconds(9007199254740993)))), "u-1", "7",
			`{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"cache","namespace":"shop","uid":"u-1","resourceVersion":"7"},
			  "spec":{"template":{"spec":{"activeDeadlineSeconds":9007199254740993}}}}`},
		{"without metadata", "a request without a name would be sent", &acappsv1.StatefulSetApplyConfiguration{}, "u-1", "7", ""},
		{"not JSON", "an empty request would be sent", unencodable{}, "u-1", "7", ""},
	}
	for _, test := range tests {
		before, _ := json.Marshal(test.intent)
		raw, err := body(test.intent, test.uid, test.version)
		if after, _ := json.Marshal(test.intent); string(before) != string(after) {
			t.Errorf("%s: the intent of the plan was changed: %s", test.name, after)
		}
		if (err != nil) != (test.want == "") {
			t.Errorf("%s: %s: error %v", test.name, test.wrong, err)
		}
		if diff := cmp.Diff(exactly(t, test.want), exactly(t, string(raw))); diff != "" {
			t.Errorf("%s: %s:\n%s", test.name, test.wrong, diff)
		}
	}
}

// exactly decodes JSON and keeps the digits of its numbers.
func exactly(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	if text == "" {
		return nil
	}
	tree := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	var metadata any
	if err := json.Unmarshal(tree["metadata"], &metadata); err != nil {
		t.Fatal(err)
	}
	tree["metadata"], _ = json.Marshal(metadata) // sorted
	return tree
}

// stored is a StatefulSet after an apply of ours. The rows of TestUnchanged change
// one thing in it.
const stored = `{"metadata": {"name": "cache", "namespace": "shop", "resourceVersion": "7", "labels": {"team": "a"}, "managedFields": [
	{"manager": "clusteredcache", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-11-30T11:00:00Z", "fieldsType": "FieldsV1",
	 "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": {"f:replicas": {}, "f:serviceName": {}}}}]},
	"spec": {"replicas": 3, "serviceName": "nodes-cache", "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}`

// TestUnchanged checks which answers to an apply mean that it changed nothing.
func TestUnchanged(t *testing.T) {
	tests := []struct {
		name, wrong string
		change      func(s *appsv1.StatefulSet)
		want        bool
	}{
		{"the same", "every pass would report a change", func(*appsv1.StatefulSet) {}, true},
		{"another resourceVersion", "a diff and a pass would disagree, because a dry run never changes it",
			func(s *appsv1.StatefulSet) { s.ResourceVersion = "8" }, true},
		{"kind and apiVersion", "a live object out of a list would always differ from an answer",
			func(s *appsv1.StatefulSet) { s.Kind, s.APIVersion = "StatefulSet", "apps/v1" }, true},
		{"kind of a claim template", "a live object in protobuf would always differ from an answer in JSON",
			func(s *appsv1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Kind = "PersistentVolumeClaim" }, true},
		{"the time of our entry", "an apply that changed nothing would be reported when the server moves the time",
			func(s *appsv1.StatefulSet) { s.ManagedFields[0].Time = nil }, true},
		{"the order in a field set", "two releases of the API server would disagree",
			func(s *appsv1.StatefulSet) {
				s.ManagedFields[0].FieldsV1.SetRawString(`{"f:spec":{"f:serviceName":{},"f:replicas":{}},"f:metadata":{"f:labels":{"f:team":{}}}}`)
			}, true},
		{"empty instead of absent", "the form of an answer would be reported as a change",
			func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{} }, true},
		{"a value", "a change would not be reported", func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 4 }, false},
		{"a label", "a change would not be reported", func(s *appsv1.StatefulSet) { s.Labels["team"] = "b" }, false},
		{"a claim template", "a change would not be reported",
			func(s *appsv1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Name = "other" }, false},
		{"our entry is smaller", "an ownership that we gained would not be reported",
			func(s *appsv1.StatefulSet) {
				s.ManagedFields[0].FieldsV1.SetRawString(`{"f:spec":{"f:replicas":{},"f:serviceName":{}}}`)
			}, false},
		{"another manager", "an ownership that we took would not be reported",
			func(s *appsv1.StatefulSet) { s.ManagedFields = append(s.ManagedFields, s.ManagedFields[0]) }, false},
	}
	for _, test := range tests {
		before, after, unmoved := &appsv1.StatefulSet{}, &appsv1.StatefulSet{}, &appsv1.StatefulSet{}
		for _, o := range []*appsv1.StatefulSet{before, after, unmoved} {
			if err := json.Unmarshal([]byte(stored), o); err != nil {
				t.Fatal(err)
			}
		}
		test.change(after)
		if unchanged(before, after) != test.want || unchanged(after, before) != test.want {
			t.Errorf("%s: want %v: %s", test.name, test.want, test.wrong)
		}
		if !reflect.DeepEqual(before, unmoved) {
			t.Errorf("%s: the comparison changed the object", test.name)
		}
	}
}

// TestWithoutOurs checks which finalizers a cache keeps.
func TestWithoutOurs(t *testing.T) {
	tests := []struct {
		name, wrong      string
		finalizers, want []string
	}{
		{"ours alone", "the cache would never go", []string{v1.Finalizer}, []string{}},
		{"in the middle", "the finalizers of others would be removed, or change their order",
			[]string{"b/x", v1.Finalizer, "a/y"}, []string{"b/x", "a/y"}},
		{"twice", "the cache would never go", []string{v1.Finalizer, v1.Finalizer}, []string{}},
		{"others", "the finalizers of others would be removed", []string{"b/x"}, []string{"b/x"}},
		{"none", "the request would be invalid", nil, nil},
	}
	for _, test := range tests {
		given := slices.Clone(test.finalizers)
		if got := withoutOurs(given); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q: %s", test.name, got, test.want, test.wrong)
		}
		if !slices.Equal(given, test.finalizers) {
			t.Errorf("%s: the live object was changed: %q", test.name, given)
		}
	}
}
