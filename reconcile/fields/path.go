package fields

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

// pathString returns a path for people. It names list items by their merge keys,
// as in spec.template.spec.containers[cache].ports[11211/TCP].name.
func pathString(p fieldpath.Path) string {
	path := ""
	for _, e := range p {
		switch {
		case e.FieldName != nil:
			path = Join(path, *e.FieldName)
		case e.Key != nil:
			keys := make([]string, 0, len(*e.Key))
			for _, k := range *e.Key {
				keys = append(keys, fmt.Sprint(k.Value.Unstructured()))
			}
			path += "[" + strings.Join(keys, "/") + "]"
		case e.Value != nil:
			path += fmt.Sprintf("[%v]", (*e.Value).Unstructured())
		}
	}
	return path
}

// Join returns the path of the field of this name below path. It quotes names with
// a dot or slash, as in metadata.labels["app.kubernetes.io/name"].
func Join(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./[]\""):
		return path + fmt.Sprintf("[%q]", name)
	case path == "":
		return name
	}
	return path + "." + name
}
