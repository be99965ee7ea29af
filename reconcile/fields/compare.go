package fields

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	v1 "example.com/clusteredcache/api/v1"
)

// Compare says in which of the fields that we own, or want to own, live is not
// what intent asks for; nothing means that applying intent would change
// nothing. subresource is "" or "status": each has an ownership of its own.
//
// Two conditions make a converged object, and both are checked: our entry in
// managedFields is exactly the field set of intent (a field too few was taken
// from us, a field too many must go), and every intended value is the live one
// (admission can change a value without touching ownership).
func Compare(intent runtime.ApplyConfiguration, live Object, subresource string) []Change {
	set := fieldSet(intent)
	entry := OurEntry(live, subresource)
	owned := entry != nil && bytes.Equal(entry.FieldsV1.GetRawBytes(), set)
	d := diff{intent: intent, live: live, managers: live.GetManagedFields()}
	w := walker{differs: d.value}
	w.root(intent, live)
	if owned && len(d.changes) == 0 {
		return nil
	}
	if !owned {
		d.ownership(set, entry)
	}
	slices.SortFunc(d.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.changes
}

// OurEntry is our Apply entry in the object's managedFields; nil: none.
func OurEntry(o Object, subresource string) *metav1.ManagedFieldsEntry {
	entries := o.GetManagedFields()
	for i := range entries {
		if isOurs(entries[i]) && entries[i].Subresource == subresource && entries[i].FieldsV1 != nil {
			return &entries[i]
		}
	}
	return nil
}

func isOurs(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == v1.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
}

// diff collects Changes; it is the slow path, taken only for objects that differ.
type diff struct {
	intent   runtime.ApplyConfiguration
	live     Object
	managers []metav1.ManagedFieldsEntry
	sets     []*fieldpath.Set // of managers, parsed when first needed
	tree     any              // live as JSON values, made when first needed
	changes  []Change
	seen     fieldpath.Set // paths already reported
}

// value reports a value that differs (walker.differs).
func (d *diff) value(path []pathElement, want, live reflect.Value) {
	p := fieldPath(path)
	d.seen.Insert(p)
	c := Change{Path: pathString(p), To: asJSON(want), By: d.owners(p)}
	if live.IsValid() {
		c.From = asJSON(live)
	}
	d.changes = append(d.changes, c)
}

// ownership reports the fields that we should own and do not, where the value
// is right, and those that we own and should not.
func (d *diff) ownership(want []byte, entry *metav1.ManagedFieldsEntry) {
	wanted, ours := parseSet(want), &fieldpath.Set{}
	if entry != nil {
		ours = parseSet(entry.FieldsV1.GetRawBytes())
	}
	wanted.Difference(ours).Leaves().Iterate(func(p fieldpath.Path) {
		if !d.reported(p) {
			c := Change{Path: pathString(p), From: d.liveJSON(p), By: d.owners(p)}
			c.To = c.From
			if c.From == "" {
				// Absent and zero are one in a typed object, and two to the server:
				// a default may have taken the place of our false.
				c.To = valueAt(d.intent, p)
			}
			d.changes = append(d.changes, c)
		}
	})
	surplus := ours.Difference(wanted)
	surplus.Iterate(func(p fieldpath.Path) {
		if d.reported(p) || !isLeafOrItem(surplus, p) {
			return
		}
		d.seen.Insert(p.Copy())
		c := Change{Path: pathString(p), From: d.liveJSON(p), By: d.owners(p)}
		if len(c.By) > 0 {
			c.To = c.From // someone else wants it too: we only let go
		}
		if c.From != "" {
			d.changes = append(d.changes, c)
		}
	})
}

// reported tells whether p or something above it is already a Change.
func (d *diff) reported(p fieldpath.Path) bool {
	for i := range p {
		if d.seen.Has(p[:i+1]) {
			return true
		}
	}
	return false
}

// isLeafOrItem keeps a removed list item one Change instead of one a field.
func isLeafOrItem(set *fieldpath.Set, p fieldpath.Path) bool {
	return p[len(p)-1].Key != nil || set.Leaves().Has(p)
}

// owners are the managers other than ours that own p.
func (d *diff) owners(p fieldpath.Path) []Manager {
	if d.sets == nil {
		for _, e := range d.managers {
			set := &fieldpath.Set{}
			if e.FieldsV1 != nil && !isOurs(e) {
				set = parseSet(e.FieldsV1.GetRawBytes())
			}
			d.sets = append(d.sets, set)
		}
	}
	var by []Manager
	for i, set := range d.sets {
		if e := d.managers[i]; set.Has(p) {
			m := Manager{Name: e.Manager, Operation: string(e.Operation)}
			if e.Time != nil {
				m.Time = e.Time.UTC()
			}
			by = append(by, m)
		}
	}
	return by
}

// parseSet reads a stored set; one that does not parse owns nothing, which
// makes the object a suspect and the server's answer the judge.
func parseSet(raw []byte) *fieldpath.Set {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return &fieldpath.Set{}
	}
	return set
}

// liveJSON is the live value at p as compact JSON; "" when there is none.
func (d *diff) liveJSON(p fieldpath.Path) string {
	if d.tree == nil {
		raw, err := json.Marshal(d.live)
		if err != nil || json.Unmarshal(raw, &d.tree) != nil {
			return ""
		}
	}
	v := d.tree
	for _, e := range p {
		if v = lookUp(v, e); v == nil {
			return ""
		}
	}
	raw, _ := json.Marshal(v) // came from JSON
	return string(raw)
}

// valueAt is the value at p in an apply configuration as compact JSON.
func valueAt(intent runtime.ApplyConfiguration, p fieldpath.Path) string {
	d := diff{}
	raw, err := json.Marshal(intent)
	if err != nil || json.Unmarshal(raw, &d.tree) != nil {
		return ""
	}
	return d.liveJSON(p)
}

func lookUp(v any, e fieldpath.PathElement) any {
	switch {
	case e.FieldName != nil:
		m, _ := v.(map[string]any)
		return m[*e.FieldName]
	case e.Key != nil:
		list, _ := v.([]any)
		for _, item := range list {
			if m, ok := item.(map[string]any); ok && hasKey(m, *e.Key) {
				return item
			}
		}
	case e.Value != nil:
		list, _ := v.([]any)
		for _, item := range list {
			if value.Equals(value.NewValueInterface(item), *e.Value) {
				return item
			}
		}
	}
	return nil
}

func hasKey(item map[string]any, key value.FieldList) bool {
	for _, k := range key {
		if !value.Equals(value.NewValueInterface(item[k.Name]), k.Value) {
			return false
		}
	}
	return true
}

func asJSON(v reflect.Value) string {
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return "?"
	}
	return string(raw)
}
