package fields

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

// stripped lists the top-level metadata fields that managedFields never name.
var stripped = map[string]bool{"name": true, "namespace": true, "uid": true, "resourceVersion": true,
	"creationTimestamp": true, "generation": true}

// fieldSet returns the FieldsV1 that the API server stores for an apply of intent,
// byte for byte: every field of intent, sorted. The ownership test of a converged
// object only compares these bytes with the stored ones. It parses nothing.
func fieldSet(intent runtime.ApplyConfiguration) []byte {
	root := follow(reflect.ValueOf(intent))
	b := append(make([]byte, 0, 2048), '{')
	fields := shapeOf(root.Type()).fields
	for i := range fields {
		f := &fields[i]
		v, set := f.intended(root)
		if !set || f.name == "apiVersion" || f.name == "kind" {
			continue
		}
		if f.name == "metadata" {
			b = appendTopMetadata(b, v)
			continue
		}
		b = appendField(b, f, v)
	}
	return append(b, '}')
}

func appendTopMetadata(b []byte, v reflect.Value) []byte {
	start := len(b)
	b = appendKey(b, "f:", "metadata")
	b = append(b, '{')
	empty := true
	fields := shapeOf(v.Type()).fields
	for i := range fields {
		f := &fields[i]
		if fv, set := f.intended(v); set && !stripped[f.name] {
			b, empty = appendField(b, f, fv), false
		}
	}
	if empty {
		return b[:start]
	}
	return append(b, '}')
}

func appendField(b []byte, f *structField, v reflect.Value) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return appendValue(append(b, f.member...), f.shape, f.keys, v)
}

// appendKey starts a member of a JSON object. prefix distinguishes fields (f:),
// keyed items (k:) and set items (v:).
func appendKey(b []byte, prefix, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendQuoted(b, prefix, name)
	return append(b, ':')
}

// appendQuoted writes prefix and s as one JSON string. Like the API server, it
// does not escape HTML. The prefix contains nothing that needs an escape.
func appendQuoted(b []byte, prefix, s string) []byte {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return append(append(append(append(b, '"'), prefix...), s...), '"')
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(prefix + s) // a string always encodes
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

func appendValue(b []byte, shape fieldShape, keys []keyField, v reflect.Value) []byte {
	switch shape {
	case shapeStruct:
		b = append(b, '{')
		b = appendMembers(b, v)
		return append(b, '}')
	case shapeMap:
		b = append(b, '{')
		names := make([]string, 0, v.Len())
		for _, k := range v.MapKeys() {
			names = append(names, k.String())
		}
		slices.Sort(names)
		for _, name := range names {
			b = append(appendKey(b, "f:", name), '{', '}')
		}
		return append(b, '}')
	case shapeKeyed:
		return appendItems(b, keys, v)
	case shapeSet:
		return appendSet(b, v)
	}
	return append(b, '{', '}')
}

func appendMembers(b []byte, v reflect.Value) []byte {
	fields := shapeOf(v.Type()).fields
	for i := range fields {
		f := &fields[i]
		if fv, set := f.intended(v); set {
			b = appendField(b, f, fv)
		}
	}
	return b
}

func appendItems(b []byte, keys []keyField, list reflect.Value) []byte {
	var few [4]reflect.Value // most lists are short
	items := few[:0]
	for i := range list.Len() {
		items = append(items, follow(list.Index(i)))
	}
	if len(items) > 1 {
		slices.SortFunc(items, func(x, y reflect.Value) int { return compareKeys(keys, x, y) })
	}
	b = append(b, '{')
	for _, item := range items {
		b = appendKey(b, "k:", string(appendItemKey(nil, keys, item)))
		b = append(b, '{')
		if !atomicStructs[item.Type()] {
			b = append(b, `".":{}`...)
			b = appendMembers(b, item)
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

func appendSet(b []byte, list reflect.Value) []byte {
	items := slices.Clone(list.Interface().([]string))
	slices.Sort(items)
	b = append(b, '{')
	for _, item := range items {
		b = append(appendKey(b, "v:", string(appendQuoted(nil, "", item))), '{', '}')
	}
	return append(b, '}')
}

// appendItemKey writes the item's merge keys as the JSON object of managedFields.
func appendItemKey(b []byte, keys []keyField, item reflect.Value) []byte {
	b = append(b, '{')
	for _, k := range keys {
		b = appendKey(b, "", k.name)
		switch v := keyValue(k, item); v.Kind() {
		case reflect.String:
			b = appendQuoted(b, "", v.String())
		default:
			b = strconv.AppendInt(b, v.Int(), 10)
		}
	}
	return append(b, '}')
}

func compareKeys(keys []keyField, x, y reflect.Value) int {
	for _, k := range keys {
		if c := compareScalar(keyValue(k, x), keyValue(k, y)); c != 0 {
			return c
		}
	}
	return 0
}

func compareScalar(x, y reflect.Value) int {
	if x.Kind() == reflect.String {
		return cmp.Compare(x.String(), y.String())
	}
	return cmp.Compare(x.Int(), y.Int())
}

// keyValue returns the item's value for a merge key: a string or an integer.
func keyValue(k keyField, item reflect.Value) reflect.Value {
	shape := shapeOf(item.Type())
	f := shape.fields[shape.byName[k.name]]
	v := f.get(item)
	if !v.IsValid() || v.Kind() == reflect.String && v.Len() == 0 {
		return reflect.ValueOf(k.byDefault)
	}
	return v
}
