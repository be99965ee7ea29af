package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"example.com/clusteredcache/reconcile/fields"
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
	live fields.Object
	ours map[string]bool // made when first needed
}

// change returns c as it may be printed, and whether something is hidden: its
// From and To may then look equal without being so.
func (m *mask) change(c fields.Change) (fields.Change, bool) {
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
			v[key] = h.hide(item, fields.Join(path, key))
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

// isOurs reports whether our manager owns the variable at path, and no other.
func (m *mask) isOurs(path string) bool {
	if m.ours == nil && m.live != nil {
		m.ours = fields.OursAlone(m.live)
	}
	return m.ours[path]
}
