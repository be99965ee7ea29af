package plan_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/internal/golden"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/plan"
)

func TestScenarios(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		golden.Equal(t, filepath.Join(s.Dir, "plan.golden.txt"), prose(plan.For(s.Input())))
	})
}

// prose is a plan as a person would read it out.
func prose(p plan.Plan) []byte {
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

func takers(c plan.Change) string {
	names := make([]string, 0, len(c.By))
	for _, m := range c.By {
		names = append(names, m.Name+" by "+m.Operation)
	}
	if len(names) == 0 {
		return ""
	}
	return " (owned by " + strings.Join(names, ", ") + ")"
}
