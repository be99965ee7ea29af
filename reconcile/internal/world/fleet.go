package world

import (
	"strings"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// Fleet is what passes report.
type Fleet struct {
	model.Fleet
	w *World
}

// Report is what passes report of one cache.
type Report struct {
	model.CacheReport
	w *World
}

// Of is the report of a cache, empty when there is nothing to say of it.
func (f Fleet) Of(name string) Report {
	for _, c := range f.Caches {
		if c.Name == name {
			return Report{c, f.w}
		}
	}
	return Report{model.CacheReport{Name: name}, f.w}
}

// Cache is the report of the cache that the world is about.
func (f Fleet) Cache() Report { return f.Of(f.w.Name) }

// Verdict is that on the cache.
func (f Fleet) Verdict() model.Verdict { return f.Cache().Verdict }

// Wants holds the cache to a verdict.
func (f Fleet) Wants(state model.State, reason string) Fleet {
	f.w.Helper()
	f.Cache().Wants(state, reason)
	return f
}

// Says wants parts in the verdict's message.
func (f Fleet) Says(parts ...string) Fleet {
	f.w.Helper()
	f.Cache().Says(parts...)
	return f
}

// Changes are those of the first step on a kind of object.
func (f Fleet) Changes(kind model.Kind) []fields.Change { return f.Cache().Changes(kind) }

// Wants holds a cache to a verdict.
func (r Report) Wants(state model.State, reason string) Report {
	r.w.Helper()
	if v := r.Verdict; v.State != state || v.Reason != reason {
		r.w.Errorf("%s: %+v, want %s (%s)", r.Name, v, state, reason)
	}
	return r
}

// WantsState holds a cache to one of some states.
func (r Report) WantsState(states ...model.State) Report {
	r.w.Helper()
	for _, state := range states {
		if r.Verdict.State == state {
			return r
		}
	}
	r.w.Errorf("%s: %+v, want one of %v", r.Name, r.Verdict, states)
	return r
}

// Says wants parts in the verdict's message.
func (r Report) Says(parts ...string) Report {
	r.w.Helper()
	for _, part := range parts {
		if m := r.Verdict.Message; !strings.Contains(m, part) {
			r.w.Errorf("%s: %q, want %q in it", r.Name, m, part)
		}
	}
	return r
}

// Step is the first one that changed a kind of object.
func (r Report) Step(kind model.Kind) model.Step {
	for _, o := range r.Outcomes {
		if o.Step.Target.Kind == kind && o.Result != model.Failed && o.Step.Action == model.ActionChange {
			return o.Step
		}
	}
	return model.Step{}
}

// Changes are those of Step.
func (r Report) Changes(kind model.Kind) []fields.Change { return r.Step(kind).Changes }

// DeletedPods are the nodes that passes deleted, with the reasons.
func (r Report) DeletedPods() []string {
	var list []string
	for _, o := range r.Outcomes {
		if o.Step.Target.Kind == "Pod" && o.Result == model.Deleted {
			list = append(list, o.Step.Target.Name+": "+o.Step.Reason)
		}
	}
	return list
}
