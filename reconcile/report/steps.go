package report

import (
	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/plan"
)

// expected is what the server answers to a step that goes well.
var expected = map[plan.Action]plan.Result{
	plan.ActionCreate:  plan.Created,
	plan.ActionChange:  plan.Configured,
	plan.ActionDelete:  plan.Deleted,
	plan.ActionReplace: plan.Replaced,
	plan.ActionClaim:   plan.Configured,
	plan.ActionRelease: plan.Released,
}

// notAttempted is the result of a step that the pass did not come to.
const notAttempted plan.Result = ""

// outcomes are all steps of a report with what became of them: those that were
// attempted, then those of the plan that were not.
func outcomes(r plan.Report) []plan.Outcome {
	type key struct {
		action plan.Action
		target plan.Ref
	}
	all := append([]plan.Outcome(nil), r.Outcomes...)
	attempted := map[key]bool{}
	for _, o := range r.Outcomes {
		attempted[key{o.Step.Action, o.Step.Target}] = true
	}
	for _, step := range r.Plan.Steps {
		if attempted[key{step.Action, step.Target}] {
			continue
		}
		o := plan.Outcome{Step: step, Result: notAttempted}
		if step.After != "" {
			o.Result, o.Estimate = plan.Estimated, "when "+step.After
		}
		all = append(all, o)
	}
	return all
}

// writes tells the outcomes that write something, or would.
func writes(o plan.Outcome) bool {
	return o.Result != plan.Failed && o.Result != plan.Unchanged
}

// effects are those of the steps that have one.
func effects(r plan.Report) []string {
	var all []string
	for _, o := range outcomes(r) {
		if writes(o) {
			all = append(all, o.Step.Effects...)
		}
	}
	return all
}

// edited tells whether a manifest changes the cache itself.
func edited(r plan.Report) bool {
	return r.Edit != nil && (r.Edit.New || len(r.Edit.Changes) > 0)
}

func cacheOf(r plan.Report) plan.Ref {
	return plan.Ref{Kind: v1.Kind, Namespace: r.Namespace, Name: r.Name}
}
