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

// Compare returns the fields in which live differs from intent, among those that
// we own or want to own. An empty result means that applying intent would change
// nothing. subresource is "" or "status"; each has its own ownership.
//
// An object has converged when two conditions are met, and Compare checks both.
// First, our entry in managedFields is exactly the field set of intent. A missing
// field was taken from us, and a surplus field must go. Second, every intended
// value is the live value, because admission can change a value without changing
// its owner.
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

// OurEntry returns our Apply entry in the object's managedFields, or nil.
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

// diff collects Changes. It is the slow path, for objects that differ.
type diff struct {
	intent   runtime.ApplyConfiguration
	live     Object
	managers []metav1.ManagedFieldsEntry
	sets     []*fieldpath.Set // of the managers, parsed on first use
	tree     any              // live as JSON values, made on first use
	changes  []Change
	seen     fieldpath.Set // the paths of changes
}

// value adds a Change for a value that differs. It serves as walker.differs.
func (d *diff) value(path []pathElement, want, live reflect.Value) {
	p := fieldPath(path)
	d.seen.Insert(p)
	c := Change{Path: pathString(p), To: asJSON(want), By: d.owners(p)}
	if live.IsValid() {
		c.From = asJSON(live)
	}
	d.changes = append(d.changes, c)
}

// ownership adds a Change for each field that we should own but do not, if its
// value is right. It also adds one for each field that we own but should not.
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
				// A typed object does not distinguish absent from zero, but the server
				// does: it may have replaced our false by its default.
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
			c.To = c.From // another manager owns it too, so we only give up our share
		}
		if c.From != "" {
			d.changes = append(d.changes, c)
		}
	})
}

// reported reports whether p, or a field above it, is already a Change.
func (d *diff) reported(p fieldpath.Path) bool {
	for i := range p {
		if d.seen.Has(p[:i+1]) {
			return true
		}
	}
	return false
}

// isLeafOrItem reports whether p is a list item or has nothing below it. So a
// removed list item is one Change, not one for each of its fields.
func isLeafOrItem(set *fieldpath.Set, p fieldpath.Path) bool {
	return p[len(p)-1].Key != nil || set.Leaves().Has(p)
}

// owners returns the managers other than ours that own p.
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

// parseSet reads a stored set. It returns an empty set if that cannot be parsed.
// The object then differs from the intent, and the server decides about the apply.
func parseSet(raw []byte) *fieldpath.Set {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return &fieldpath.Set{}
	}
	return set
}

// liveJSON returns the live value at p as compact JSON, or "" if it is absent.
func (d *diff) liveJSON(p fieldpath.Path) string {
	if d.tree == nil {
		raw, err := json.Marshal(d.live)
		if err != nil || json.Unmarshal(raw, &d.tree) != nil {
			return ""
		}
	}
	v := d.tree
	for _, e := range p {
		if v = descend(v, e); v == nil {
			return ""
		}
	}
	raw, _ := json.Marshal(v) // came from JSON
	return string(raw)
}

// valueAt returns the value at p in an apply configuration as compact JSON.
func valueAt(intent runtime.ApplyConfiguration, p fieldpath.Path) string {
	d := diff{}
	raw, err := json.Marshal(intent)
	if err != nil || json.Unmarshal(raw, &d.tree) != nil {
		return ""
	}
	return d.liveJSON(p)
}

// descend returns the value that e names inside v, or nil.
func descend(v any, e fieldpath.PathElement) any {
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
