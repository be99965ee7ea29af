package report

import (
	"bytes"
	"encoding/json"
	"strings"

	"example.com/clusteredcache/reconcile/plan"
)

const (
	notShown      = "(not shown)"
	setByAnother  = "(set by another manager, not shown)"
	lastApplied   = "last-applied-configuration"
	environment   = "env"
	environmentAt = ".env["
)

// masked returns c without what must not be printed: values that somebody else
// set in a container's environment, which are where passwords go, and kubectl's
// copy of the whole object.
func masked(c plan.Change) plan.Change {
	if strings.Contains(c.Path, lastApplied) {
		c.From, c.To = whole(c.From, notShown), whole(c.To, notShown)
		return c
	}
	foreign := len(c.By) > 0
	if foreign && (strings.Contains(c.Path, environmentAt) || strings.HasSuffix(c.Path, "."+environment)) {
		if c.From == c.To {
			c.To = whole(c.To, setByAnother)
		}
		c.From = whole(c.From, setByAnother)
		return c
	}
	same := c.From == c.To
	c.From = within(c.From, foreign)
	if same {
		c.To = c.From
	} else {
		c.To = within(c.To, false)
	}
	return c
}

// whole is text in the place of a value, if there is a value.
func whole(value, text string) string {
	if value == "" {
		return ""
	}
	return text
}

// within masks inside a value: a change may be of a whole container, or of all
// annotations.
func within(value string, foreign bool) string {
	if !strings.Contains(value, lastApplied) && (!foreign || !strings.Contains(value, `"`+environment+`"`)) {
		return value
	}
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	var decoded any
	if decoder.Decode(&decoded) != nil {
		return notShown
	}
	hide(decoded, foreign)
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(decoded) != nil {
		return notShown
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func hide(value any, foreign bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			hide(item, foreign)
		}
	case map[string]any:
		for key, item := range v {
			variables, isList := item.([]any)
			switch {
			case strings.Contains(key, lastApplied):
				v[key] = notShown
			case foreign && key == environment && isList:
				hideVariables(variables)
			default:
				hide(item, foreign)
			}
		}
	}
}

func hideVariables(variables []any) {
	for _, item := range variables {
		if variable, ok := item.(map[string]any); ok && variable["value"] != nil {
			variable["value"] = setByAnother
		}
	}
}
