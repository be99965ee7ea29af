package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "example.com/clusteredcache/api/v1"
)

// EditOf is the difference that a manifest makes to a stored cache: in spec,
// labels and annotations (but kubectl's own), each field with the managers
// whose value goes.
func EditOf(stored, supposed *v1.ClusteredCache) []Change {
	d := diff{live: stored, managers: stored.GetManagedFields()}
	for _, part := range []struct {
		path      fieldpath.Path
		from, to  any
		forgotten string
	}{
		{fieldpath.MakePathOrDie("metadata", "labels"), stored.Labels, supposed.Labels, ""},
		{fieldpath.MakePathOrDie("metadata", "annotations"), stored.Annotations, supposed.Annotations, "kubectl.kubernetes.io/last-applied-configuration"},
		{fieldpath.MakePathOrDie("spec"), stored.Spec, supposed.Spec, ""},
	} {
		from, to := asTree(part.from), asTree(part.to)
		delete(from, part.forgotten)
		delete(to, part.forgotten)
		d.fields(part.path, from, to)
	}
	slices.SortFunc(d.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.changes
}

// asTree is v as JSON values; both come from JSON and go back to it.
func asTree(v any) map[string]any {
	tree := map[string]any{}
	raw, _ := json.Marshal(v)
	_ = json.Unmarshal(raw, &tree)
	return tree
}

// fields compares two objects member by member. Lists are one value: without
// the schema of podTemplate nobody knows their keys.
func (d *diff) fields(at fieldpath.Path, from, to map[string]any) {
	names := map[string]bool{}
	for name := range from {
		names[name] = true
	}
	for name := range to {
		names[name] = true
	}
	for name := range names {
		p := append(at.Copy(), fieldpath.PathElement{FieldName: &name})
		was, isWas := from[name].(map[string]any)
		will, isWill := to[name].(map[string]any)
		if isWas && isWill {
			d.fields(p, was, will)
			continue
		}
		c := Change{Path: pathString(p), From: jsonOf(from, name), To: jsonOf(to, name)}
		if c.From != c.To {
			c.By = d.owners(p)
			d.changes = append(d.changes, c)
		}
	}
}

func jsonOf(tree map[string]any, name string) string {
	v, ok := tree[name]
	if !ok {
		return ""
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}
