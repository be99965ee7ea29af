// fields writes the reference of a CRD's fields into a Markdown file, between the
// lines <!-- fields --> and <!-- end of fields -->.
//
//	fields CRD MARKDOWN
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const begin, end = "<!-- fields -->\n", "<!-- end of fields -->\n"

// schema is what a row needs of a JSON schema.
type schema struct {
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Default     json.RawMessage   `json:"default"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Required    []string          `json:"required"`
	Enum        []string          `json:"enum"`
	Minimum     *json.Number      `json:"minimum"`
	Maximum     *json.Number      `json:"maximum"`
	IntOrString bool              `json:"x-kubernetes-int-or-string"`
}

// kubernetes are fields of Kubernetes' own types, which its documentation has.
var kubernetes = []string{"conditions", "env", "envFrom", "resources"}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "fields:", err)
		os.Exit(1)
	}
}

func run(crd, markdown string) error {
	text, err := os.ReadFile(crd)
	if err != nil {
		return err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPI schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return err
	}
	document, err := os.ReadFile(markdown)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(document, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return errors.New("no lines for the fields in " + markdown)
	}
	var table strings.Builder
	table.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	object := definition.Spec.Versions[0].Schema.OpenAPI
	for _, part := range []string{"spec", "status"} {
		rows(&table, part, object.Properties[part])
	}
	return os.WriteFile(markdown, slices.Concat(before, []byte(begin), []byte(table.String()), []byte(end), after), 0o644)
}

// rows writes the fields below path, each before its own.
func rows(table *strings.Builder, path string, s schema) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		inner, suffix := field, ""
		if field.Items != nil {
			inner, suffix = *field.Items, "[]"
		}
		own := path + "." + name + suffix
		required := ""
		if slices.Contains(s.Required, name) {
			required = "required"
		}
		if field.Default != nil {
			required = "`" + string(field.Default) + "`"
		}
		meaning := strings.ReplaceAll(strings.Join(strings.Fields(field.Description), " "), "|", `\|`)
		fmt.Fprintf(table, "| `%s` | %s | %s | %s |\n", own, kind(inner), required, meaning)
		if !slices.Contains(kubernetes, name) {
			rows(table, own, inner)
		}
	}
}

func kind(s schema) string {
	switch {
	case s.IntOrString:
		return "quantity"
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, ", ")
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s, %s to %s", s.Type, *s.Minimum, *s.Maximum)
	}
	return s.Type
}
