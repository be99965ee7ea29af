package resources

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// serverKeys has, by the type of their items, the lists that have other keys for the
// API server than for strategic merge.
var serverKeys = map[reflect.Type][]string{
	reflect.TypeFor[corev1.ContainerPort](): {"containerPort", "protocol"},
	reflect.TypeFor[corev1.ResourceClaim](): {"name"},
}

// serverSets has the lists, by object and field, in which the server accepts every
// value only once although strategic merge replaces them.
var serverSets = map[reflect.Type]string{
	reflect.TypeFor[corev1.VolumeMount]():                     "bindMountOptions",
	reflect.TypeFor[corev1.ContainerRestartRuleOnExitCodes](): "values",
}

// keyDefaults has the fields of serverKeys that may be left out, with their defaults.
var keyDefaults = map[string]any{"protocol": string(corev1.ProtocolTCP)}

// keys returns the fields that identify an item of the list. It returns nil for a
// list that the API server replaces as a whole. If strategic merge has fewer keys
// than the server, its keys count, because it would mix the items. Ports are the
// exception: completePorts adds our port only after the merge.
func (p place) keys() []string {
	if keys, differ := serverKeys[p.typ.Elem()]; differ {
		return keys
	}
	if p.mergeKey == "" {
		return nil
	}
	return []string{p.mergeKey}
}

// checkList checks every item, and refuses two items that are the same for the
// server. Of several environment variables with one name it keeps the last, as a
// container does.
func (p place) checkList(list []any) (any, error) {
	seen := map[string]int{} // the index in result of the item with this key
	result := make([]any, 0, len(list))
	for i, value := range list {
		item, err := p.item(i, value)
		if err != nil {
			return nil, err
		}
		if isDirective(value) {
			if item.own != nil {
				result = append(result, value) // our template has the item that this deletes
			}
			continue
		}
		checked, err := item.check(value)
		if err != nil {
			return nil, err
		}
		key, keyed, err := p.keyOf(item, checked)
		if err != nil {
			return nil, err
		}
		if earlier, twice := seen[key]; keyed && twice {
			if item.typ != reflect.TypeFor[corev1.EnvVar]() {
				return nil, item.fault("stands here twice: remove one of the two")
			}
			result[earlier] = nil
		}
		seen[key] = len(result)
		result = append(result, checked)
	}
	return slices.DeleteFunc(result, func(item any) bool { return item == nil }), nil
}

// item returns the place of an item of this list. Its path has the item's key, or the
// index of an item without key.
func (p place) item(index int, value any) (place, error) {
	item := place{path: fmt.Sprintf("%s[%d]", p.path, index), typ: dereferenced(p.typ.Elem())}
	object, isObject := value.(map[string]any)
	if !isObject || p.mergeKey == "" || object[p.mergeKey] == nil {
		return item, nil
	}
	switch key := object[p.mergeKey].(type) {
	case string, int64:
		item.path = fmt.Sprintf("%s[%v]", p.path, key)
	default:
		return item, item.at(p.mergeKey).fault("must be a string or a whole number: it says which item is meant")
	}
	own, _ := p.own.([]any)
	for _, candidate := range own {
		if candidate, isObject := candidate.(map[string]any); isObject &&
			candidate[p.mergeKey] == object[p.mergeKey] {
			item.own = candidate
		}
	}
	return item, nil
}

// keyOf returns the server's key of a checked item. keyed is false if items of this
// list have no key.
func (p place) keyOf(item place, value any) (key string, keyed bool, err error) {
	if isScalar(item.typ) {
		return fmt.Sprint(value), p.unique, nil
	}
	object, _ := value.(map[string]any)
	var parts []string
	for _, name := range p.keys() {
		part := object[name]
		if part == nil {
			part = keyDefaults[name]
		}
		if part == "" && keyDefaults[name] != nil {
			part = keyDefaults[name] // for the server an empty string means the default
		}
		if part == nil {
			return "", false, item.fault(name + " is missing: it says which item is meant")
		}
		parts = append(parts, fmt.Sprint(part))
	}
	return strings.Join(parts, "/"), parts != nil, nil
}

// directiveInList checks the items that are directives. It returns "replace" if one
// of them says that the list replaces the cache's own.
func (p place) directiveInList(list []any) (string, error) {
	found := ""
	for i, value := range list {
		if !isDirective(value) {
			continue
		}
		item, err := p.item(i, value)
		if err != nil {
			return "", err
		}
		object := value.(map[string]any)
		replace, named := object[directive] == "replace", object[p.mergeKey] != nil
		switch {
		case p.mergeKey == "":
			return "", item.fault("this list is always replaced as a whole: leave " + directive + " out")
		case !replace && object[directive] != "delete":
			return "", item.fault(directive + " must be replace or delete")
		case p.path == "spec.containers":
			// The cache's own container is the only item of its list.
			return "", item.fault(replacesOurs)
		case replace && len(object) > 1:
			return "", item.fault(directive + ": replace concerns the whole list: write it as an item of its own")
		case !replace && !named:
			return "", item.fault(p.mergeKey + " is missing: it says which item is deleted")
		case replace:
			found = "replace"
		}
	}
	return found, nil
}

// isDirective reports whether an item is a directive for its list.
func isDirective(item any) bool {
	object, isObject := item.(map[string]any)
	return isObject && object[directive] != nil
}
