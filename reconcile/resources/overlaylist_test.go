package resources_test

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"example.com/clusteredcache/reconcile/resources"
)

// TestEveryKeyedListIsKnown compares the lists in which the check looks for
// repeated keys with those of the API server, so that a newer API does not
// add one unnoticed.
func TestEveryKeyedListIsKnown(t *testing.T) {
	set := statefulSet(t, newCache(), "")
	typed, err := serverTypes(t).ObjectToTyped(unstructuredOf(t, set))
	if err != nil {
		t.Fatal(err)
	}
	server := map[string]string{}
	collectKeyedLists(typed.Schema(), "io.k8s.api.core.v1.PodTemplateSpec", server)
	ours := resources.KeyedLists()
	// Strategic merge tells these apart by less than the server does.
	server["PodSpec.topologySpreadConstraints"] = "topologyKey"
	if !reflect.DeepEqual(ours, server) {
		t.Errorf("the lists with keys are\n%v\nto the server, to us\n%v", server, ours)
	}
}

// collectKeyedLists finds the lists below a type whose items the server tells
// apart, by type and field.
func collectKeyedLists(types *schema.Schema, name string, found map[string]string) {
	seen := map[string]bool{}
	var walk func(ref schema.TypeRef)
	walk = func(ref schema.TypeRef) {
		atom, _ := types.Resolve(ref)
		if ref.NamedType == nil || atom.Map == nil || seen[*ref.NamedType] {
			return
		}
		seen[*ref.NamedType] = true
		object := (*ref.NamedType)[strings.LastIndex(*ref.NamedType, ".")+1:]
		for _, field := range atom.Map.Fields {
			inner, _ := types.Resolve(field.Type)
			if inner.List == nil {
				walk(field.Type)
				continue
			}
			if inner.List.ElementRelationship == schema.Associative {
				found[object+"."+field.Name] = strings.Join(inner.List.Keys, "/")
			}
			walk(inner.List.ElementType)
		}
	}
	walk(schema.TypeRef{NamedType: &name})
}
