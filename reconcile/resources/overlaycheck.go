package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// directive is the key that makes strategic merge replace or delete instead of
// merging.
const directive = "$patch"

const replacesOurs = "this would replace what makes the pods nodes of the cache: leave " + directive + " out"

// place is one place in an overlay.
type place struct {
	// path leads to the place, such as "spec.containers[cache].env". It is empty at
	// the top.
	path string
	// typ is the type that the API has there.
	typ reflect.Type
	// own is what the cache's own template has there, or nil.
	own any
	// mergeKey is the field that identifies an item of a list for strategic merge.
	// It is empty for a list that is replaced as a whole.
	mergeKey string
	// unique is set for a list in which the API server accepts every value only
	// once.
	unique bool
}

func (p place) fault(message string) *OverlayError {
	return &OverlayError{Path: p.path, Message: message}
}

// check walks value along the type of the place and refuses what the API does not
// have there. Strategic merge alone would find fewer faults. It accepts unknown
// fields, mixes items with the same key, and silently drops an object that should
// replace nothing. check returns value in a form that is ready for the merge.
func (p place) check(value any) (any, error) {
	if value == nil {
		return nil, p.fault("null has no meaning in a server-side apply: leave the field out (" +
			directive + ": delete inside an object removes it)")
	}
	if isScalar(p.typ) {
		return value, p.checkScalar(value)
	}
	switch p.typ.Kind() {
	case reflect.Slice:
		if list, isList := value.([]any); isList {
			return p.checkList(list)
		}
		return nil, p.fault("must be a list")
	default:
		if object, isObject := value.(map[string]any); isObject {
			return p.checkObject(object)
		}
		return nil, p.fault("must be an object")
	}
}

func (p place) checkObject(object map[string]any) (any, error) {
	own, _ := p.own.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		child, err := p.child(name)
		if err != nil {
			return nil, err
		}
		what, err := child.directiveIn(object[name])
		if err != nil {
			return nil, err
		}
		if what != "" {
			delete(own, name)
			child.own = nil
		}
		if what == "delete" {
			delete(object, name)
			continue
		}
		if object[name], err = child.check(object[name]); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// child returns the place of a field of this object, or of an entry of this map.
func (p place) child(name string) (place, error) {
	if strings.HasPrefix(name, "$") {
		return place{}, p.at(name).fault("is not supported (the only directive is " + directive +
			", with replace or delete): leave it out")
	}
	own, _ := p.own.(map[string]any)
	if p.typ.Kind() == reflect.Map {
		return place{path: p.path + "[" + name + "]", typ: p.typ.Elem(), own: own[name]}, nil
	}
	child := p.at(name)
	field, found := fieldNamed(p.typ, name)
	if !found {
		return place{}, child.fault("there is no such field: check spelling and capital letters, or remove it")
	}
	child.typ, child.own = dereferenced(field.Type), own[name]
	child.mergeKey = field.Tag.Get("patchMergeKey")
	child.unique = strings.HasPrefix(field.Tag.Get("patchStrategy"), "merge") || serverSets[p.typ] == name
	return child, nil
}

// at returns the place of a field below this one, with only its path.
func (p place) at(name string) place {
	if p.path == "" {
		return place{path: name}
	}
	return place{path: p.path + "." + name}
}

// protected has the places whose value cannot be replaced or deleted.
var protected = []string{"metadata", "metadata.labels", "metadata.annotations", "spec"}

// directiveIn removes a directive about the whole value from it, and returns it:
// "replace", "delete" or "". The caller carries the directive out before the merge,
// on the cache's own template. Strategic merge would drop an object that replaces
// nothing, and would leave an empty object where it deletes.
func (p place) directiveIn(value any) (string, error) {
	switch value := value.(type) {
	case map[string]any:
		what, marked := value[directive]
		if !marked || isScalar(p.typ) || p.typ.Kind() == reflect.Slice {
			return "", nil // value has no directive, or the API has no object here
		}
		delete(value, directive)
		if slices.Contains(protected, p.path) {
			return "", p.fault(replacesOurs)
		}
		if what != "replace" && what != "delete" {
			return "", p.fault(directive + " must be replace or delete")
		}
		return what.(string), nil
	case []any:
		return p.directiveInList(value)
	}
	return "", nil
}

// checkScalar decodes the value into the API's own type to see whether it fits.
func (p place) checkScalar(value any) error {
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, reflect.New(p.typ).Interface())
	}
	if err == nil {
		return nil
	}
	switch p.typ.Kind() {
	case reflect.String:
		return p.fault("must be a string: put it in quotes")
	case reflect.Bool:
		return p.fault("must be true or false, without quotes")
	case reflect.Int32, reflect.Int64:
		return p.fault("must be a whole number in range, without quotes")
	default:
		return p.fault(fmt.Sprintf("is not a valid %s: write it as in a Pod", p.typ.Name()))
	}
}

// isScalar reports whether the API writes t as one value.
func isScalar(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return false
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8 // bytes are a string in JSON
	default:
		return true
	}
}

// fieldNamed returns the field with this name in JSON, also from embedded structs.
func fieldNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			if inner, found := fieldNamed(dereferenced(field.Type), name); found {
				return inner, true
			}
		}
		if tag == name && tag != "-" {
			return field, true
		}
	}
	return reflect.StructField{}, false
}

func dereferenced(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
