package fields

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Edit returns what a manifest changes in a stored object. supposed is the object
// that the manifest would make of it. Edit compares spec, labels and annotations,
// but not kubectl's own copy of the manifest. Each change names the managers whose
// value is replaced.
func Edit(stored, supposed Object) []Change {
	d := diff{live: stored, managers: stored.GetManagedFields()}
	from, to := asTree(stored), asTree(supposed)
	for _, path := range []fieldpath.Path{
		fieldpath.MakePathOrDie("metadata", "labels"),
		fieldpath.MakePathOrDie("metadata", "annotations"),
		fieldpath.MakePathOrDie("spec"),
	} {
		d.fields(path, member(from, path), member(to, path))
	}
	slices.SortFunc(d.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.changes
}

// member returns the object at path in a tree, without kubectl's copy of the
// manifest.
func member(tree map[string]any, path fieldpath.Path) map[string]any {
	for _, e := range path {
		tree, _ = tree[*e.FieldName].(map[string]any)
	}
	delete(tree, corev1.LastAppliedConfigAnnotation)
	return tree
}

// asTree returns v as JSON values. It ignores errors: v was read from JSON, so it
// can be written as JSON.
func asTree(v any) map[string]any {
	tree := map[string]any{}
	raw, _ := json.Marshal(v)
	_ = json.Unmarshal(raw, &tree)
	return tree
}

// fields compares two objects member by member. It compares a list as one value,
// because the keys of its items are unknown without the schema of podTemplate.
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
