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
	keys  []keyField    // with item: the list's merge keys; nil for a set
	item  reflect.Value // valid: an item of the list before
}

// walker compares an apply configuration with a live object, both as Go
// values, field by JSON name. differs is called for every intended value that
// the live object does not have, with the path valid for the call only.
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
			continue // a typed live object does not carry them
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

// counterparts are the fields of a live type that have the names of the fields
// of a shape; nil where there is none.
type counterparts []*structField

// counterparts are those in the type of v; none when it is not valid.
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
		if at, ok := live.byName[f.name]; ok {
			c[i] = &live.fields[at]
		}
	}
	s.pairs.Store(v.Type(), c)
	return c
}

// value is that of the counterpart of field i.
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
		// An absent key is not an empty value: a removed label is drift.
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

// sameOrder: variables refer to those before them, and init containers run in
// turn. Items of others may stand in between.
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

// contains tells whether every value in want is also in live. The server
// defaults inside atomic values, so live may have more fields, never more
// items.
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

// saysNothing: an explicit zero that the server replaced by its default, as it
// would have had it been left out.
func saysNothing(field string, want, live reflect.Value) bool {
	byDefault := serverDefaults[field]
	return byDefault.zero && want.IsZero() && live.IsValid() && asJSON(live) == byDefault.json
}

// sameScalar compares by value: quantities by amount, and absent equals zero
// (typed live objects do not tell them apart).
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

// SameContent reports whether a field of an apply configuration holds the same
// as that of a live object, compared by what JSON carries.
func SameContent[A, B any](want *A, live *B) bool {
	if want == nil || live == nil {
		return (want == nil) == (live == nil)
	}
	return contains(follow(reflect.ValueOf(want)), follow(reflect.ValueOf(live)))
}
