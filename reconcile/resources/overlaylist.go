package resources

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// serverKeys are the lists, by the type of their items, whose items the API
// server tells apart by other fields than strategic merge does.
var serverKeys = map[reflect.Type][]string{
	reflect.TypeFor[corev1.ContainerPort](): {"containerPort", "protocol"},
	reflect.TypeFor[corev1.ResourceClaim](): {"name"},
}

// serverSets are the lists, by the object and the field they stand in, that
// take every value only once although strategic merge replaces them.
var serverSets = map[reflect.Type]string{
	reflect.TypeFor[corev1.VolumeMount]():                     "bindMountOptions",
	reflect.TypeFor[corev1.ContainerRestartRuleOnExitCodes](): "values",
}

// keyDefaults are the fields of serverKeys that may be left out.
var keyDefaults = map[string]any{"protocol": string(corev1.ProtocolTCP)}

// keys are the fields by which no two items of the list may agree; none for a
// list that the API server takes as a whole. Where strategic merge has fewer
// of them than the server it has the last word, for it would mix the items,
// except for ports: completePorts keeps ours out of the merge.
func (p place) keys() []string {
	if keys, differ := serverKeys[p.typ.Elem()]; differ {
		return keys
	}
	if p.mergeKey == "" {
		return nil
	}
	return []string{p.mergeKey}
}

// checkList checks every item, and that no two of them are the same to the
// server. Of environment variables of one name the last one wins, as it does
// in a container.
func (p place) checkList(list []any) (any, error) {
	seen := map[string]int{} // where in result the item of a key is
	result := make([]any, 0, len(list))
	for i, value := range list {
		item, err := p.item(i, value)
		if err != nil {
			return nil, err
		}
		if isDirective(value) {
			if item.own != nil {
				result = append(result, value) // a deletion that finds its item
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

// item is the place of an item of this list, called by its key if it has one.
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

// keyOf is what the server knows a checked item by, if it tells the items of
// this list apart at all.
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
			part = keyDefaults[name] // the server takes the empty string as left out
		}
		if part == nil {
			return "", false, item.fault(name + " is missing: it says which item is meant")
		}
		parts = append(parts, fmt.Sprint(part))
	}
	return strings.Join(parts, "/"), parts != nil, nil
}

// directiveInList checks the items that are directives, and says "replace" if
// one of them is that the list replaces the cache's own.
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
			// The only item that the cache has here is its own container.
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

// isDirective says whether an item is a directive to its list.
func isDirective(item any) bool {
	object, isObject := item.(map[string]any)
	return isObject && object[directive] != nil
}
