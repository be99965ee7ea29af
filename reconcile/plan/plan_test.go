package plan_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/internal/golden"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/plan"
)

func TestScenarios(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		golden.Equal(t, filepath.Join(s.Dir, "plan.golden.txt"), prose(plan.For(s.Input(t))))
	})
}

// Versions have an order within a repository only.
func TestImageMoves(t *testing.T) {
	const wanted = "docker.io/library/memcached:1.6.39"
	for image, says := range map[string]string{
		"docker.io/library/memcached:1.6.38": "upgrade from 1.6.38 to 1.6.39",
		"docker.io/library/memcached:1.7":    "downgrade from 1.7 to 1.6.39",
		"docker.io/library/memcached:x":      "version changes from x to 1.6.39",
		"evil:1":                             "image changes from evil:1 to " + wanted,
		"evil:2":                             "image changes from evil:2 to " + wanted,
		"evil":                               "image changes from evil to " + wanted,
		"evil:5000/memcached:1.6.39":         "image changes from evil:5000/memcached:1.6.39 to " + wanted,
	} {
		in := scenario.Load(t, "version-change").Input(t)
		in.Live.StatefulSet.Spec.Template.Spec.Containers[0].Image = image
		step := plan.For(in).Steps[0]
		if step.Effects[0] != says || (step.Downgrade != "") != strings.HasPrefix(says, "downgrade") {
			t.Errorf("%s: %s (downgrade %q), want %s", image, step.Effects[0], step.Downgrade, says)
		}
	}
}

// prose is a plan as a person would read it out.
func prose(p model.Plan) []byte {
	var b bytes.Buffer
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s %s", s.Action, s.Target)
		if s.Reason != "" {
			fmt.Fprintf(&b, ": %s", s.Reason)
		}
		fmt.Fprintln(&b)
		for _, e := range s.Effects {
			fmt.Fprintf(&b, "  > %s\n", e)
		}
		for _, c := range s.Changes {
			fmt.Fprintf(&b, "  %s: %s -> %s%s\n", c.Path, orNothing(c.From), orNothing(c.To), takers(c))
		}
	}
	for _, h := range p.Holds {
		fmt.Fprintf(&b, "hold %s (%s, %s): %s\n", h.Target, h.Class, h.Reason, h.Message)
	}
	if b.Len() == 0 {
		b.WriteString("nothing to do\n")
	}
	return b.Bytes()
}

func orNothing(value string) string {
	if value == "" {
		return "(nothing)"
	}
	return value
}

func takers(c fields.Change) string {
	names := make([]string, 0, len(c.By))
	for _, m := range c.By {
		names = append(names, m.Name+" by "+m.Operation)
	}
	if len(names) == 0 {
		return ""
	}
	return " (owned by " + strings.Join(names, ", ") + ")"
}
