package resources

import (
	"reflect"
	"strings"
)

// KeyedLists are the lists of a pod template whose items the overlay check
// tells apart, by type and field, with their keys.
func KeyedLists() map[string]string {
	found := map[string]string{}
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		if seen[t] || t.Kind() != reflect.Struct || isScalar(t) {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name == "" {
				walk(dereferenced(t.Field(i).Type))
				continue
			}
			list, err := place{typ: t}.child(name)
			if err != nil {
				continue
			}
			if list.typ.Kind() != reflect.Slice || isScalar(list.typ) {
				walk(list.typ)
				continue
			}
			walk(dereferenced(list.typ.Elem()))
			if keys := list.keys(); keys != nil || list.unique && isScalar(list.typ.Elem()) {
				// The server has no name for what EphemeralContainer embeds.
				found[strings.TrimSuffix(t.Name(), "Common")+"."+name] = strings.Join(keys, "/")
			}
		}
	}
	walk(podTemplateType)
	return found
}
