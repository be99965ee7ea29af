package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/plan"
)

// FuzzManagedFields: whatever the managedFields of a live object say, the plan
// is made, equal input gives an equal plan, and what is planned writes values
// that are as they should be nowhere but to own them.
func FuzzManagedFields(f *testing.F) {
	in := scenario.Load(f, "converged").Input(f)
	for _, e := range in.Live.StatefulSet.ManagedFields {
		f.Add(e.Manager, string(e.Operation), e.Subresource, e.FieldsV1.GetRawBytes())
	}
	for _, fields := range []string{
		``, `null`, `[]`, `{}`, `{"f:spec":1}`, `{"f:spec":{"f:replicas":{},"f:replicas":{}}}`, `{"k:{}":{}}`, `{"k:{\"name\":[]}":{}}`, `{"v:":{}}`, `{"v:{":{}}`,
		`{"i:-1":{},"i:999999999999999999999":{}}`, `{".":{}}`, `{"f:":{}}`, `{"x:y":{}}`, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{".":{},"f:image":{}}}}}}}`,
	} {
		f.Add(v1.FieldManager, "Apply", "", []byte(fields))
		f.Add("kubectl", "Update", "status", []byte(fields))
	}
	f.Fuzz(func(t *testing.T, manager, operation, subresource string, fields []byte) {
		if !json.Valid(fields) {
			return // cannot be stored
		}
		entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource, FieldsV1: &metav1.FieldsV1{}}
		entry.FieldsV1.SetRawBytes(fields)
		for _, managers := range [][]metav1.ManagedFieldsEntry{{entry}, append([]metav1.ManagedFieldsEntry{entry, {Manager: "x"}}, in.Live.StatefulSet.ManagedFields...)} {
			in := in
			in.Live.StatefulSet = in.Live.StatefulSet.DeepCopy()
			in.Live.StatefulSet.ManagedFields = managers
			for _, step := range twice(t, in).Steps {
				for _, c := range step.Changes {
					if c.From != c.To && c.To != "" {
						t.Errorf("%s: from %q to %q, and nothing but ownership differs", c.Path, c.From, c.To)
					}
				}
			}
		}
	})
}

// FuzzLive: whatever a live StatefulSet is, the plan is made, and made the same
// twice. The fuzzed JSON is laid over a converged one.
func FuzzLive(f *testing.F) {
	for _, live := range []string{
		`{}`, `{"spec":{"replicas":null,"template":{"spec":{"containers":[]}}}}`, `{"spec":{"template":{"spec":{"containers":[{"name":"other"}]}}}}`,
		`{"spec":{"selector":null}}`, `{"spec":{"selector":{"matchLabels":{"a":"b"}},"serviceName":"x"}}`, `{"status":{"replicas":-1,"readyReplicas":99,"observedGeneration":-9}}`,
		`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":-3}}}}`, `{"metadata":{"ownerReferences":[{"uid":"","controller":true}]}}`,
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`, `{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"data"}},{}]}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"cache","image":":@/","ports":[{},{}],"env":[{"name":"A"},{"name":"A"}]}]}}}}`,
		`{"spec":{"template":{"metadata":{"labels":null,"annotations":{"cache.example.com/config-hash":""}}}}}`,
	} {
		f.Add("converged", []byte(live))
		f.Add("custom-with-storage", []byte(live))
		f.Add("deleting", []byte(live))
	}
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		if name != "converged" && name != "custom-with-storage" && name != "deleting" {
			return
		}
		in := scenario.Load(t, name).Input(t)
		live := &appsv1.StatefulSet{}
		if in.Live.StatefulSet != nil {
			live = in.Live.StatefulSet
		}
		if json.Unmarshal(raw, live) != nil {
			return
		}
		live.Namespace, live.Name = in.Cache.Namespace, in.Cache.Name
		in.Live.StatefulSet = live
		twice(t, in)
	})
}

// twice plans twice; nothing of the input may have been written to in between.
func twice(t *testing.T, in model.Input) model.Plan {
	t.Helper()
	first, err := json.Marshal(plan.For(in))
	if err != nil {
		t.Fatal(err)
	}
	p := plan.For(in)
	second, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("planned twice: %s", cmp.Diff(string(first), string(second)))
	}
	return p
}
