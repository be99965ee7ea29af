package fields

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "example.com/clusteredcache/api/v1"
)

// NotOurs returns the paths of the fields in an object's spec that only other
// managers set. It leaves out what admission set in our own requests: those fields
// carry our name, and admission would set them again.
func NotOurs(live Object) []string {
	spec := "spec"
	ours, theirs := &fieldpath.Set{}, &fieldpath.Set{}
	for _, e := range live.GetManagedFields() {
		if e.FieldsV1 == nil || e.Subresource != "" {
			continue
		}
		set := parseSet(e.FieldsV1.GetRawBytes()).WithPrefix(fieldpath.PathElement{FieldName: &spec}).Leaves()
		if e.Manager == v1.FieldManager {
			ours = ours.Union(set)
		} else {
			theirs = theirs.Union(set)
		}
	}
	var paths []string
	theirs.Difference(ours).Iterate(func(path fieldpath.Path) {
		paths = append(paths, "spec."+pathString(path))
	})
	slices.Sort(paths)
	return paths
}

// OursAlone returns the paths that only our manager owns in an object. It returns
// nil when an entry of managedFields cannot be read.
func OursAlone(live Object) map[string]bool {
	ours, theirs := &fieldpath.Set{}, &fieldpath.Set{}
	for _, e := range live.GetManagedFields() {
		if e.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
			return nil
		}
		if isOurs(e) {
			ours = ours.Union(set)
		} else {
			theirs = theirs.Union(set)
		}
	}
	paths := map[string]bool{}
	ours.Difference(theirs).Iterate(func(p fieldpath.Path) { paths[pathString(p)] = true })
	return paths
}

// Set is a set of fields.
type Set struct{ set *fieldpath.Set }

// Has reports whether the set has the field with these names on its path.
func (s Set) Has(names ...string) bool {
	p := make(fieldpath.Path, 0, len(names))
	for i := range names {
		p = append(p, fieldpath.PathElement{FieldName: &names[i]})
	}
	return s.set.Has(p)
}

// AppliedAlone returns the fields that a manager owns by apply, without those that
// others own too.
func AppliedAlone(live Object, manager string) Set {
	applied, others := &fieldpath.Set{}, &fieldpath.Set{}
	for _, e := range live.GetManagedFields() {
		if e.FieldsV1 == nil {
			continue
		}
		set := parseSet(e.FieldsV1.GetRawBytes())
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply {
			applied = applied.Union(set) // there is one entry for each subresource
		} else {
			others = others.Union(set)
		}
	}
	return Set{applied.Difference(others)}
}

// SameOwners reports whether the same managers own the same fields of two
// objects. It ignores when and in which form an entry was written.
func SameOwners(x, y Object) bool {
	a, b := x.GetManagedFields(), y.GetManagedFields()
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &fieldpath.Set{}, &fieldpath.Set{}
		if a[i].Manager != b[i].Manager || a[i].Operation != b[i].Operation || a[i].Subresource != b[i].Subresource ||
			a[i].FieldsV1 == nil || b[i].FieldsV1 == nil ||
			x.FromJSON(bytes.NewReader(a[i].FieldsV1.GetRawBytes())) != nil ||
			y.FromJSON(bytes.NewReader(b[i].FieldsV1.GetRawBytes())) != nil || !x.Equals(y) {
			return false
		}
	}
	return true
}

// SameEntry reports whether our entry for the main endpoint is the same in two
// objects.
func SameEntry(a, b Object) bool {
	x, y := OurEntry(a, ""), OurEntry(b, "")
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return x.FieldsV1.Equal(*y.FieldsV1)
}
