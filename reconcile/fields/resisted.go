package fields

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// resistance lists how an API server can accept an apply and still store something
// else. Each pass sends the apply again, at the cost of one request.
var resistance = []struct{ class, meaning string }{
	{"held-by-admission", "an admission policy or webhook keeps another value"},
	{"dropped-by-server", "the server does not know the field, or a feature gate is off"},
	{"normalised", "the server stores another form of it: write it that way"},
}

// Resisted returns a warning about an apply that the server accepted without
// storing the intended object. It lists the fields by class. The result is "" if
// the server stored what was intended.
func Resisted(intent runtime.ApplyConfiguration, answer Object) string {
	fields := map[string][]string{}
	note := func(class, path string) { fields[class] = append(fields[class], path) }
	w := walker{differs: func(path []pathElement, want, live reflect.Value) {
		class := "held-by-admission"
		switch {
		case !live.IsValid():
			class = "dropped-by-server"
		case want.IsZero():
			class = "normalised" // the server replaced our zero by its default
		}
		note(class, pathString(fieldPath(path)))
	}}
	w.root(intent, answer)
	if len(fields) == 0 {
		for _, path := range otherForm(intent, answer) {
			note("normalised", path)
		}
	}
	var warnings []string
	for _, r := range resistance {
		if paths := fields[r.class]; len(paths) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s (%s)", r.class, strings.Join(paths, ", "), r.meaning))
		}
	}
	return strings.Join(warnings, "; ")
}

// otherForm returns the fields in which our stored field set differs from the
// intended one. The caller knows that every value is the intended one.
func otherForm(intent runtime.ApplyConfiguration, answer Object) []string {
	set, entry := fieldSet(intent), OurEntry(answer, "")
	if entry == nil || bytes.Equal(set, entry.FieldsV1.GetRawBytes()) {
		return nil
	}
	wanted, ours := parseSet(set), parseSet(entry.FieldsV1.GetRawBytes())
	var paths []string
	wanted.Difference(ours).Union(ours.Difference(wanted)).Iterate(func(p fieldpath.Path) { paths = append(paths, pathString(p)) })
	slices.Sort(paths)
	return paths
}
