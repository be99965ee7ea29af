package report

import "example.com/clusteredcache/reconcile/model"

// expected maps each action to the result of a successful step.
var expected = map[model.Action]model.Result{
	model.ActionCreate:   model.Created,
	model.ActionChange:   model.Configured,
	model.ActionDelete:   model.Deleted,
	model.ActionReplace:  model.Replaced,
	model.ActionOwn:      model.Configured,
	model.ActionFinalize: model.Finalized,
}

// notAttempted is the result of a step that the pass did not reach.
const notAttempted model.Result = ""

// outcomes returns every step of a report with its result. The attempted steps come
// first, then the other steps of the plan.
func outcomes(r model.CacheReport) []model.Outcome {
	type key struct {
		action model.Action
		target model.Ref
	}
	all := append([]model.Outcome(nil), r.Outcomes...)
	attempted := map[key]bool{}
	for _, o := range r.Outcomes {
		attempted[key{o.Step.Action, o.Step.Target}] = true
	}
	for _, step := range r.Plan.Steps {
		if attempted[key{step.Action, step.Target}] {
			continue
		}
		o := model.Outcome{Step: step, Result: notAttempted}
		if step.After != "" {
			o.Result, o.Estimate = model.Estimated, "when "+step.After
		}
		all = append(all, o)
	}
	return all
}

// writes reports whether the step wrote something, or would write something.
func writes(o model.Outcome) bool {
	return o.Result != model.Failed && o.Result != model.Unchanged
}

// effects returns the effects of all steps that write.
func effects(r model.CacheReport) []string {
	var all []string
	for _, o := range outcomes(r) {
		if writes(o) {
			all = append(all, o.Step.Effects...)
		}
	}
	return all
}

// cacheOf names the ClusteredCache of a report.
func cacheOf(r model.CacheReport) model.Ref {
	return model.Ref{Kind: model.KindCache, Namespace: r.Namespace, Name: r.Name}
}
