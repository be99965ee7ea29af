package resources_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/golden"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/resources"
)

// children are the apply configurations of a scenario in the order in which a
// person would read them, those that should exist; and the overlay's fault. A
// cache that is being deleted gets nothing but the Jobs of its hooks.
func children(s scenario.Scenario) ([]any, error) {
	var all []any
	if s.Cache.DeletionTimestamp != nil {
		return hookJobs(s.Cache)
	}
	set, err := resources.StatefulSet(s.Cache, resources.ConfigHash(s.ConfigMap))
	if err == nil {
		all = append(all, set)
	}
	all = append(all, resources.ClientService(s.Cache), resources.NodesService(s.Cache))
	if budget := resources.DisruptionBudget(s.Cache); budget != nil {
		all = append(all, budget)
	}
	return all, err
}

func TestChildrenOfEveryScenario(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		if s.Cache.DeletionTimestamp != nil && s.Name != "deletion-hook-starts" {
			t.Skip("one of these tells what the Jobs of hooks are like")
		}
		all, overlayErr := children(s)
		var documents bytes.Buffer
		if overlayErr != nil {
			fmt.Fprintf(&documents, "# no StatefulSet: %s\n", overlayErr)
		}
		for i, child := range all {
			text, err := yaml.Marshal(child)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				documents.WriteString("---\n")
			}
			documents.Write(text)
		}
		golden.Equal(t, filepath.Join(s.Dir, "children.golden.yaml"), documents.Bytes())
	})
}

// TestChildrenAreClean reads the bodies as they go to the server: nothing in
// them may own what was never meant.
func TestChildrenAreClean(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		all, _ := children(s)
		for _, child := range append(all, resources.Finalizer(s.Cache, "2026-11-30T12:00:00Z")) {
			object := asJSON(t, child)
			forEachValue(object, "", func(path string, value any) {
				if fault := unclean(path, value); fault != "" {
					t.Errorf("%s %s: %s", object["kind"], path, fault)
				}
			})
		}
	})
}

// unclean says what is wrong with a value in an apply body.
func unclean(path string, value any) string {
	field := path[strings.LastIndex(path, ".")+1:]
	if path == ".status" || field == "creationTimestamp" {
		return "belongs to the server"
	}
	switch value := value.(type) {
	case nil:
		return "is null"
	case map[string]any:
		if len(value) == 0 && field != "emptyDir" { // which is written like that
			return "is an empty object"
		}
	case []any:
		if len(value) == 0 {
			return "is an empty list"
		}
	case string, float64:
		if reflect.ValueOf(value).IsZero() {
			return "is a zero value"
		}
	}
	return ""
}

// TestChildrenAreMergeable hands the bodies to the server's own merge types,
// which refuse an unknown field, and a list that holds one key twice.
func TestChildrenAreMergeable(t *testing.T) {
	converter := serverTypes(t)
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		all, _ := children(s)
		for _, child := range all {
			object := unstructuredOf(t, child)
			if _, err := converter.ObjectToTyped(object); err != nil {
				t.Errorf("%s: %v", object.GetKind(), err)
			}
		}
	})
}

func serverTypes(t testing.TB) managedfields.TypeConverter {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return applyconfigurations.NewTypeConverter(scheme)
}

func TestEveryChildIsLabelledAndControlled(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		all, _ := children(s)
		for _, child := range all {
			object := unstructuredOf(t, child)
			for label, want := range map[string]string{
				v1.NameLabel:      v1.NameValue,
				v1.InstanceLabel:  s.Cache.Name,
				v1.ManagedByLabel: v1.ManagedByValue,
			} {
				if got := object.GetLabels()[label]; got != want {
					t.Errorf("%s: label %s is %q, want %q", object.GetKind(), label, got, want)
				}
			}
			owners := object.GetOwnerReferences()
			if len(owners) != 1 || owners[0].UID != s.Cache.UID || owners[0].Kind != v1.Kind ||
				owners[0].APIVersion != "cache.example.com/v1" || owners[0].Name != s.Cache.Name ||
				!*owners[0].Controller || !*owners[0].BlockOwnerDeletion {
				t.Errorf("%s: owners are %+v", object.GetKind(), owners)
			}
			if object.GetNamespace() != s.Cache.Namespace {
				t.Errorf("%s: namespace is %q", object.GetKind(), object.GetNamespace())
			}
		}
	})
}

// TestChildrenShareNothingWithTheCache changes a cache after the fact.
func TestChildrenShareNothingWithTheCache(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		untouched := s.Cache.DeepCopy()
		all, _ := children(s)
		if !reflect.DeepEqual(untouched, s.Cache) {
			t.Fatal("the cache was changed")
		}
		before := asText(t, all)
		for i := range s.Cache.Spec.Args {
			s.Cache.Spec.Args[i] = "changed"
		}
		for name := range s.Cache.Spec.Resources.Limits {
			delete(s.Cache.Spec.Resources.Limits, name)
		}
		if storage := s.Cache.Spec.Storage; storage != nil && storage.StorageClassName != nil {
			*storage.StorageClassName = "changed"
		}
		if after := asText(t, all); after != before {
			t.Errorf("the children changed with the cache:\n%s\n%s", before, after)
		}
	})
}

// TestSameCacheSameChildren: maps are walked in random order, which must not
// show.
func TestSameCacheSameChildren(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		first, _ := children(s)
		for range 20 {
			again, _ := children(s)
			if asText(t, again) != asText(t, first) {
				t.Fatal("two results for one cache")
			}
		}
	})
}

func asText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func asJSON(t *testing.T, value any) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(asText(t, value)), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func forEachValue(value any, path string, visit func(path string, value any)) {
	visit(path, value)
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			forEachValue(inner, path+"."+name, visit)
		}
	case []any:
		for i, inner := range value {
			forEachValue(inner, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}

func unstructuredOf(t *testing.T, value any) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: asJSON(t, value)}
}
