package plan

import (
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// fieldPath turns the walker's path into the form of managedFields.
func fieldPath(path []pathElement) fieldpath.Path {
	p := make(fieldpath.Path, 0, len(path))
	for _, e := range path {
		switch {
		case !e.item.IsValid():
			p = append(p, fieldpath.PathElement{FieldName: &e.field})
		case e.keys == nil:
			v := value.NewValueInterface(e.item.String())
			p = append(p, fieldpath.PathElement{Value: &v})
		default:
			list := make(value.FieldList, 0, len(e.keys))
			for _, k := range e.keys {
				list = append(list, value.Field{Name: k.name, Value: keyAsValue(k, e)})
			}
			p = append(p, fieldpath.PathElement{Key: &list})
		}
	}
	return p
}

func keyAsValue(k keyField, e pathElement) value.Value {
	v := keyValue(k, e.item)
	if v.CanInt() {
		return value.NewValueInterface(v.Int())
	}
	return value.NewValueInterface(v.String())
}

// pathString writes a path for people, list items by their merge keys:
// spec.template.spec.containers[cache].ports[11211/TCP].name. Names with a
// dot or slash are quoted: metadata.labels["app.kubernetes.io/name"].
func pathString(p fieldpath.Path) string {
	var b strings.Builder
	for _, e := range p {
		switch {
		case e.FieldName != nil && strings.ContainsAny(*e.FieldName, "./[]\""):
			fmt.Fprintf(&b, "[%q]", *e.FieldName)
		case e.FieldName != nil:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(*e.FieldName)
		case e.Key != nil:
			keys := make([]string, 0, len(*e.Key))
			for _, k := range *e.Key {
				keys = append(keys, fmt.Sprint(k.Value.Unstructured()))
			}
			fmt.Fprintf(&b, "[%s]", strings.Join(keys, "/"))
		case e.Value != nil:
			fmt.Fprintf(&b, "[%v]", (*e.Value).Unstructured())
		}
	}
	return b.String()
}
