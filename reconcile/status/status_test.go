package status_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/clusteredcache/reconcile/internal/golden"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/plan"
	"example.com/clusteredcache/reconcile/status"
)

// The status that each scenario has before its steps are sent.
func TestScenarios(t *testing.T) {
	scenario.Each(t, func(t *testing.T, s scenario.Scenario) {
		in := s.Input(t)
		intent, verdict := status.For(in, plan.For(in), nil)
		out := fmt.Sprintf("# %s (%s): %s\n", verdict.State, verdict.Reason, verdict.Message)
		if intent == nil {
			out += "# no status is written\n"
		} else {
			body, err := yaml.Marshal(intent.Status)
			if err != nil {
				t.Fatal(err)
			}
			out += string(body)
		}
		golden.Equal(t, filepath.Join(s.Dir, "status.golden.yaml"), []byte(out))
	})
}
