package fields

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pathElement is a field by name, or an item of a keyed or set list.
type pathElement struct {
	field string
	keys  []keyField    // the merge keys of the item's list; nil for a set
	item  reflect.Value // valid for an item of the list that precedes it in the path
}

// walker compares an apply configuration with a live object. Both are Go values,
// and fields correspond by their names in JSON. It calls differs for every
// intended value that the live object lacks. The path is valid only during the
// call.
type walker struct {
	path    []pathElement
	differs func(path []pathElement, want, live reflect.Value)
}

func (w *walker) root(intent runtime.ApplyConfiguration, live Object) {
	want, have := follow(reflect.ValueOf(intent)), follow(reflect.ValueOf(live))
	shape := shapeOf(want.Type())
	counterparts := shape.counterparts(have)
	for i := range shape.fields {
		f := &shape.fields[i]
		if f.name == "apiVersion" || f.name == "kind" {
			continue // a typed live object does not have them
		}
		if v, set := f.intended(want); set {
			w.field(f, v, counterparts.value(have, i))
		}
	}
}

func (s *structShape) value(v reflect.Value, name string) reflect.Value {
	i, ok := s.byName[name]
	if !ok || !v.IsValid() {
		return reflect.Value{}
	}
	return s.fields[i].get(v)
}

// counterparts has, for each field of a shape, the field of a live type with the
// same name, or nil.
type counterparts []*structField

// counterparts returns the counterparts in the type of v, or nil if v is invalid.
func (s *structShape) counterparts(v reflect.Value) counterparts {
	if !v.IsValid() {
		return nil
	}
	if known, ok := s.pairs.Load(v.Type()); ok {
		return known.(counterparts)
	}
	live := shapeOf(v.Type())
	c := make(counterparts, len(s.fields))
	for i, f := range s.fields {
		if j, ok := live.byName[f.name]; ok {
			c[i] = &live.fields[j]
		}
	}
	s.pairs.Store(v.Type(), c)
	return c
}

// value returns the value in v of the counterpart of field i.
func (c counterparts) value(v reflect.Value, i int) reflect.Value {
	if c == nil || c[i] == nil {
		return reflect.Value{}
	}
	return c[i].get(v)
}

func (w *walker) field(f *structField, want, live reflect.Value) {
	w.path = append(w.path, pathElement{field: f.name})
	switch f.shape {
	case shapeScalar:
		if !sameScalar(want, live) && !saysNothing(f.name, want, live) {
			w.differs(w.path, want, live)
		}
	case shapeAtomic:
		if !contains(want, live) {
			w.differs(w.path, want, live)
		}
	case shapeStruct:
		w.members(want, live)
	case shapeMap:
		w.entries(want, live)
	case shapeKeyed:
		w.items(f.keys, want, live)
	case shapeSet:
		w.set(want, live)
	}
	w.path = w.path[:len(w.path)-1]
}

func (w *walker) members(want, live reflect.Value) {
	shape := shapeOf(want.Type())
	counterparts := shape.counterparts(live)
	for i := range shape.fields {
		f := &shape.fields[i]
		if v, set := f.intended(want); set {
			w.field(f, v, counterparts.value(live, i))
		}
	}
}

func (w *walker) entries(want, live reflect.Value) {
	for it := want.MapRange(); it.Next(); {
		var lv reflect.Value
		if live.IsValid() && live.Len() > 0 {
			lv = live.MapIndex(it.Key())
		}
		// An absent key differs from an empty value: a removed label is drift.
		if wv := it.Value(); !lv.IsValid() || !sameScalar(wv, lv) {
			w.path = append(w.path, pathElement{field: it.Key().String()})
			w.differs(w.path, wv, lv)
			w.path = w.path[:len(w.path)-1]
		}
	}
}

func (w *walker) items(keys []keyField, want, live reflect.Value) {
	if !sameOrder(keys, want, live) {
		w.differs(w.path, want, live)
	}
	for i := range want.Len() {
		item := follow(want.Index(i))
		w.path = append(w.path, pathElement{keys: keys, item: item})
		other := findItem(keys, item, live)
		switch {
		case !other.IsValid():
			w.differs(w.path, item, other)
		case atomicStructs[item.Type()]:
			if !contains(item, other) {
				w.differs(w.path, item, other)
			}
		default:
			w.members(item, other)
		}
		w.path = w.path[:len(w.path)-1]
	}
}

// sameOrder reports whether the live list has our items in our order. Order
// matters because environment variables refer to earlier ones, and because init
// containers run one after another. Items of others may stand between ours.
func sameOrder(keys []keyField, want, live reflect.Value) bool {
	if !live.IsValid() {
		return true
	}
	last := -1
	for i := range want.Len() {
		item := follow(want.Index(i))
		for j := range live.Len() {
			if compareKeys(keys, item, follow(live.Index(j))) != 0 {
				continue
			}
			if j < last {
				return false
			}
			last = j
			break
		}
	}
	return true
}

func findItem(keys []keyField, item, list reflect.Value) reflect.Value {
	if !list.IsValid() {
		return list
	}
	for i := range list.Len() {
		if other := follow(list.Index(i)); compareKeys(keys, item, other) == 0 {
			return other
		}
	}
	return reflect.Value{}
}

func (w *walker) set(want, live reflect.Value) {
	for i := range want.Len() {
		item, found := want.Index(i), false
		for j := 0; live.IsValid() && j < live.Len() && !found; j++ {
			found = live.Index(j).String() == item.String()
		}
		if !found {
			w.path = append(w.path, pathElement{item: item})
			w.differs(w.path, item, reflect.Value{})
			w.path = w.path[:len(w.path)-1]
		}
	}
}

// contains reports whether every value in want is also in live. live may have
// more fields, because the server sets defaults inside atomic values. It must not
// have more items.
func contains(want, live reflect.Value) bool {
	switch want.Kind() {
	case reflect.Struct:
		if scalarStructs[want.Type()] {
			return sameScalar(want, live)
		}
		return containsStruct(want, live)
	case reflect.Map:
		if !live.IsValid() || live.Len() != want.Len() {
			return false
		}
		for it := want.MapRange(); it.Next(); {
			if lv := live.MapIndex(it.Key()); !lv.IsValid() || !contains(it.Value(), lv) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if !live.IsValid() || live.Len() != want.Len() {
			return false
		}
		for i := range want.Len() {
			if !contains(follow(want.Index(i)), follow(live.Index(i))) {
				return false
			}
		}
		return true
	}
	return sameScalar(want, live)
}

func containsStruct(want, live reflect.Value) bool {
	shape := shapeOf(want.Type())
	counterparts := shape.counterparts(live)
	for i := range shape.fields {
		f := &shape.fields[i]
		v, set := f.intended(want)
		if !set {
			continue
		}
		if lv := counterparts.value(live, i); !contains(v, lv) && !saysNothing(f.name, v, lv) {
			return false
		}
	}
	return true
}

// saysNothing reports whether we sent an explicit zero and the server stored its
// default, exactly as if the field had been omitted.
func saysNothing(field string, want, live reflect.Value) bool {
	byDefault := serverDefaults[field]
	return byDefault.zero && want.IsZero() && live.IsValid() && asJSON(live) == byDefault.json
}

// sameScalar reports whether two scalars have the same value. It compares
// quantities by amount. An absent value equals zero, because typed live objects do
// not distinguish the two.
func sameScalar(want, live reflect.Value) bool {
	if !live.IsValid() {
		return want.IsZero()
	}
	switch want.Kind() {
	case reflect.String:
		return live.Kind() == reflect.String && want.String() == live.String()
	case reflect.Bool:
		return live.Kind() == reflect.Bool && want.Bool() == live.Bool()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return live.CanInt() && want.Int() == live.Int()
	}
	switch a := want.Interface().(type) {
	case resource.Quantity:
		b, ok := live.Interface().(resource.Quantity)
		return ok && a.Cmp(b) == 0
	case metav1.Time:
		b, ok := live.Interface().(metav1.Time)
		return ok && a.Equal(&b)
	}
	return want.Type() == live.Type() && reflect.DeepEqual(want.Interface(), live.Interface())
}

// SameContent reports whether a field of a live object has every value that a
// field of an apply configuration has in JSON.
func SameContent[A, B any](want *A, live *B) bool {
	if want == nil || live == nil {
		return (want == nil) == (live == nil)
	}
	return contains(follow(reflect.ValueOf(want)), follow(reflect.ValueOf(live)))
}
