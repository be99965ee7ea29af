package fields

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "example.com/clusteredcache/api/v1"
)

// storedCache is a cache that kubectl created and an autoscaler resized.
const storedCache = `{"metadata": {"name": "cache", "namespace": "shop", "resourceVersion": "7", "labels": {"team": "a", "app.kubernetes.io/part-of": "x"},
	"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n"}, "managedFields": [
	{"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "cache.example.com/v1", "time": "2026-11-30T11:00:00Z", "fieldsType": "FieldsV1",
	 "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}, "f:app.kubernetes.io/part-of": {}}, "f:annotations": {"f:note": {}}}, "f:spec": {"f:version": {}, "f:size": {}, "f:podTemplate": {}}}},
	{"manager": "autoscaler", "operation": "Update", "apiVersion": "cache.example.com/v1", "time": "2026-11-30T11:30:00Z", "fieldsType": "FieldsV1",
	 "fieldsV1": {"f:spec": {"f:size": {}}}}]},
	"spec": {"version": "1.6.38", "size": 5, "args": ["-v"], "podTemplate": {"spec": {"hostNetwork": true, "nodeSelector": {"disk": "ssd"}}}}}`

// TestEdit checks what a manifest changes in a stored cache, and whose values go.
func TestEdit(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 30, 11, minute, 0, 0, time.UTC) }
	kubectl := Manager{Name: "kubectl-client-side-apply", Operation: "Update", Time: at(0)}
	autoscaler := Manager{Name: "autoscaler", Operation: "Update", Time: at(30)}
	tests := []struct {
		name, wrong string
		change      func(c *v1.ClusteredCache)
		want        []Change
	}{
		{"nothing", "an applied manifest would always differ", func(*v1.ClusteredCache) {}, nil},
		{"what the server writes", "a dry run would always differ",
			func(c *v1.ClusteredCache) { c.ResourceVersion, c.Generation, c.ManagedFields = "8", 2, nil }, nil},
		{"the copy of kubectl", "a report would contain the whole object twice",
			func(c *v1.ClusteredCache) {
				c.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = `{"spec":{}}`
			}, nil},
		{"a value of two managers", "a person would not learn that the manifest fights the autoscaler",
			func(c *v1.ClusteredCache) { c.Spec.Size = 3 },
			[]Change{{Path: "spec.size", From: "5", To: "3", By: []Manager{kubectl, autoscaler}}}},
		{"a label that changes", "a name with dots would be a wrong path, and its owner would not be found",
			func(c *v1.ClusteredCache) { c.Labels["app.kubernetes.io/part-of"] = "y" },
			[]Change{{Path: `metadata.labels["app.kubernetes.io/part-of"]`, From: `"x"`, To: `"y"`, By: []Manager{kubectl}}}},
		{"a label that comes", "a new value would have an owner",
			func(c *v1.ClusteredCache) { c.Labels["new"] = "" },
			[]Change{{Path: "metadata.labels.new", To: `""`}}},
		{"an annotation that goes", "a value would go without a word",
			func(c *v1.ClusteredCache) { delete(c.Annotations, "note") },
			[]Change{{Path: "metadata.annotations.note", From: `"n"`, By: []Manager{kubectl}}}},
		{"all labels", "the last label would go without a word",
			func(c *v1.ClusteredCache) { c.Labels = nil },
			[]Change{{Path: "metadata.labels.team", From: `"a"`, By: []Manager{kubectl}},
				{Path: `metadata.labels["app.kubernetes.io/part-of"]`, From: `"x"`, By: []Manager{kubectl}}}},
		{"a list", "the items would be compared one by one, although their keys are not known",
			func(c *v1.ClusteredCache) { c.Spec.Args = []string{"-v", "-m", "64"} },
			[]Change{{Path: "spec.args", From: `["-v"]`, To: `["-v","-m","64"]`}}},
		{"a field deep in the pod template", "the whole template would be shown for one field",
			func(c *v1.ClusteredCache) {
				c.Spec.PodTemplate.Raw = []byte(`{"spec":{"nodeSelector":{"disk":"hdd"},"hostNetwork":true}}`)
			},
			[]Change{{Path: "spec.podTemplate.spec.nodeSelector.disk", From: `"ssd"`, To: `"hdd"`}}},
		{"the pod template as a whole", "its owner would not be named",
			func(c *v1.ClusteredCache) { c.Spec.PodTemplate = nil },
			[]Change{{Path: "spec.podTemplate", From: `{"spec":{"hostNetwork":true,"nodeSelector":{"disk":"ssd"}}}`, By: []Manager{kubectl}}}},
		{"several", "the order would change from run to run",
			func(c *v1.ClusteredCache) { c.Spec.Version, c.Spec.Size, c.Labels["team"] = "1.6.39", 3, "b" },
			[]Change{{Path: "metadata.labels.team", From: `"a"`, To: `"b"`, By: []Manager{kubectl}},
				{Path: "spec.size", From: "5", To: "3", By: []Manager{kubectl, autoscaler}},
				{Path: "spec.version", From: `"1.6.38"`, To: `"1.6.39"`, By: []Manager{kubectl}}}},
	}
	for _, test := range tests {
		before, after := &v1.ClusteredCache{}, &v1.ClusteredCache{}
		for _, c := range []*v1.ClusteredCache{before, after} {
			if err := json.Unmarshal([]byte(storedCache), c); err != nil {
				t.Fatal(err)
			}
		}
		test.change(after)
		if diff := cmp.Diff(test.want, Edit(before, after)); diff != "" {
			t.Errorf("%s: %s:\n%s", test.name, test.wrong, diff)
		}
		if before.Annotations["note"] != "n" || len(before.Annotations) != 2 {
			t.Errorf("%s: the stored cache was changed", test.name)
		}
	}
}
