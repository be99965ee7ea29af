package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/plan"
)

// notShown stands for every value that is not shown, so that two of them say
// nothing about each other.
const notShown = "(not shown)"

// lastApplied is kubectl's copy of a whole object.
const lastApplied = "last-applied-configuration"

// variableValue matches the path of the value of an environment variable,
// which is where passwords go.
var variableValue = regexp.MustCompile(`\.env\[.*\]\.value$`)

// mask hides what must not be printed of one object: kubectl's copy of it, and
// live values of environment variables unless we set them and nobody else did.
// What is not sure is hidden.
type mask struct {
	// live is the object that changes, nil: nothing in it is known to be ours.
	live plan.Object
	ours map[string]bool // made when first needed
}

// change returns c as it may be printed, and whether something is hidden: its
// From and To may then look equal without being so.
func (m *mask) change(c plan.Change) (plan.Change, bool) {
	if strings.Contains(c.Path, lastApplied) {
		c.From, c.To = whole(c.From), whole(c.To)
		return c, true
	}
	secret := map[string]bool{}
	from, hidFrom := rewrite(c.From, c.Path, func(path string, value any) bool {
		if len(c.By) == 0 && m.isOurs(path) {
			return false
		}
		secret[fmt.Sprint(value)] = true
		return true
	})
	// The wanted value comes from the spec. It is shown, unless that would tell
	// the hidden one.
	to, hidTo := rewrite(c.To, c.Path, func(_ string, value any) bool { return secret[fmt.Sprint(value)] })
	c.From, c.To = from, to
	return c, hidFrom || hidTo
}

// whole is notShown in the place of a value, if there is a value.
func whole(value string) string {
	if value == "" {
		return ""
	}
	return notShown
}

// rewrite hides inside value, which stands at path: a change may be of one
// variable, of a whole container, or of all annotations. hidden decides about
// values of environment variables.
func rewrite(value, path string, hidden func(path string, value any) bool) (string, bool) {
	if !suspect(value, path) {
		return value, false
	}
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	var tree any
	if decoder.Decode(&tree) != nil {
		return whole(value), value != ""
	}
	h := hider{hidden: hidden}
	tree = h.hide(tree, path)
	if h.count > 0 && tree == notShown {
		return notShown, true
	}
	// Encoded anew also when nothing is hidden: < then reads as itself.
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(tree) != nil {
		return notShown, true
	}
	return strings.TrimSuffix(b.String(), "\n"), h.count > 0
}

// suspect tells whether there may be something to hide. Escapes may spell any
// key.
func suspect(value, path string) bool {
	return value != "" && (strings.Contains(path, ".env") || strings.Contains(value, `"env"`) ||
		strings.Contains(value, lastApplied) || strings.Contains(value, `\u`))
}

// hider replaces values in a tree of JSON values.
type hider struct {
	hidden func(path string, value any) bool
	count  int
}

func (h *hider) hide(value any, path string) any {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			v[i] = h.hide(item, path+"["+itemName(item)+"]")
		}
	case map[string]any:
		for key, item := range v {
			if strings.Contains(key, lastApplied) {
				v[key] = notShown
				h.count++
				continue
			}
			v[key] = h.hide(item, path+field(key))
		}
	case nil:
	default:
		if variableValue.MatchString(path) && h.hidden(path, v) {
			h.count++
			return notShown
		}
	}
	return value
}

// itemName is the merge key of the lists that lead to environment variables.
func itemName(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// field is a field in a path, in the form of plan.Change.
func field(name string) string {
	if strings.ContainsAny(name, `./[]"`) {
		return fmt.Sprintf("[%q]", name)
	}
	return "." + name
}

// isOurs tells whether our manager owns the variable at path, and no other.
func (m *mask) isOurs(path string) bool {
	if m.ours == nil {
		m.ours = map[string]bool{}
		if m.live != nil {
			m.collect()
		}
	}
	return m.ours["."+strings.TrimPrefix(path, ".")]
}

func (m *mask) collect() {
	entries := m.live.GetManagedFields()
	for _, wantOurs := range []bool{true, false} {
		for _, e := range entries {
			isOurs := e.Manager == v1.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
			if isOurs != wantOurs || e.FieldsV1 == nil {
				continue
			}
			var tree map[string]any
			if json.Unmarshal(e.FieldsV1.GetRawBytes(), &tree) != nil {
				clear(m.ours) // who owns what is not known
				return
			}
			owned(tree, "", func(path string) {
				if m.ours[path] = isOurs; !isOurs {
					delete(m.ours, path)
				}
			})
		}
	}
}

// owned calls found with the paths of all environment variables' values in a
// tree of managedFields.
func owned(tree map[string]any, path string, found func(path string)) {
	for key, below := range tree {
		at := path
		if name, ok := strings.CutPrefix(key, "f:"); ok {
			at += field(name)
		} else if raw, ok := strings.CutPrefix(key, "k:"); ok {
			at += "[" + mergeKey(raw) + "]"
		}
		if variableValue.MatchString(at) {
			found(at)
		}
		if m, ok := below.(map[string]any); ok {
			owned(m, at, found)
		}
	}
}

// mergeKey is {"name":"x"} as paths have it: x.
func mergeKey(raw string) string {
	var key map[string]any
	if json.Unmarshal([]byte(raw), &key) != nil {
		return raw
	}
	values := make([]string, 0, len(key))
	for _, name := range slices.Sorted(maps.Keys(key)) {
		values = append(values, fmt.Sprint(key[name]))
	}
	return strings.Join(values, "/")
}
