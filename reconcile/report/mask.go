package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"example.com/clusteredcache/reconcile/fields"
)

// notShown replaces every hidden value. It is always the same, so that two hidden
// values cannot be compared.
const notShown = "(not shown)"

// lastApplied is part of the name of the annotation with kubectl's copy of a whole
// object.
const lastApplied = "last-applied-configuration"

// variableValue matches the path of the value of an environment variable. Such a
// value is often a password.
var variableValue = regexp.MustCompile(`\.env\[.*\]\.value$`)

// mask hides the values of one object that must not be printed. These are kubectl's
// copy of the object, and live values of environment variables that are not
// certainly ours alone.
type mask struct {
	// live is the object that changes. If it is nil, nothing in it is known to be
	// ours.
	live fields.Object
	ours map[string]bool // filled on first use
}

// change returns c as it may be printed, and whether something is hidden. If so,
// From and To may look equal although they differ.
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
	// The wanted value comes from the spec. It is shown, unless it would reveal the
	// hidden one.
	to, hidTo := rewrite(c.To, c.Path, func(_ string, value any) bool { return secret[fmt.Sprint(value)] })
	c.From, c.To = from, to
	return c, hidFrom || hidTo
}

// whole returns notShown in place of a value, or "" if the value is empty.
func whole(value string) string {
	if value == "" {
		return ""
	}
	return notShown
}

// rewrite hides parts of value, which is found at path. The value may be one
// variable, a whole container, or all annotations. The function hidden decides
// about each value of an environment variable.
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
	// The value is encoded again even if nothing is hidden, so that < is not
	// escaped.
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(tree) != nil {
		return notShown, true
	}
	return strings.TrimSuffix(b.String(), "\n"), h.count > 0
}

// suspect reports whether value may contain something to hide. It includes values
// with escapes, because an escape can spell any key.
func suspect(value, path string) bool {
	return value != "" && (strings.Contains(path, ".env") || strings.Contains(value, `"env"`) ||
		strings.Contains(value, lastApplied) || strings.Contains(value, `\u`))
}

// hider hides values in a tree of JSON values, and counts them.
type hider struct {
	hidden func(path string, value any) bool
	count  int
}

// hide returns the value at path with hidden parts replaced. It changes the tree in
// place.
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

// itemName returns the name of a list item. The lists that lead to environment
// variables use it as their merge key.
func itemName(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// isOurs reports whether our manager, and no other, owns the variable at path.
func (m *mask) isOurs(path string) bool {
	if m.ours == nil && m.live != nil {
		m.ours = fields.OursAlone(m.live)
	}
	return m.ours[path]
}
