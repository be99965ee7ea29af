package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

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

// kubernetes are fields whose types the documentation of Kubernetes describes.
var kubernetes = []string{"conditions", "env", "envFrom", "resources"}

// fieldTable has a row for each field of a CRD.
func fieldTable(crd string) (string, error) {
	text, err := os.ReadFile(crd)
	if err != nil {
		return "", err
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
		return "", fmt.Errorf("%s: %w", crd, err)
	}
	var table strings.Builder
	table.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	object := definition.Spec.Versions[0].Schema.OpenAPI
	for _, part := range []string{"spec", "status"} {
		rows(&table, part, object.Properties[part])
	}
	return table.String(), nil
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
		fmt.Fprintf(table, "| `%s` | %s | %s | %s |\n", own, kind(inner), required, cell(field.Description))
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

// cell puts a text on one line of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
