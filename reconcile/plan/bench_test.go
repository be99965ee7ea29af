package plan_test

import (
	"testing"

	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/plan"
)

// A converged cache is what a pass meets nearly always: four children to be
// recognised as such.
func BenchmarkConverged(b *testing.B) {
	in := scenario.Load(b, "converged").Input(b)
	for b.Loop() {
		if p := plan.For(in); len(p.Steps) != 0 {
			b.Fatal(p.Steps)
		}
	}
}
