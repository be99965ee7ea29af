package report

import (
	"fmt"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/plan"
)

// Steps counts steps on children, and releases of caches.
type Steps struct {
	Created, Changed, Deleted, Released int
	// Restarts is the number of nodes that the changes make restart.
	Restarts int
}

// Caches counts caches by their state. Those that a Fleet does not list are
// settled.
type Caches struct {
	Total, Settled, Progressing, Stalled, Failed int
}

// Summary is a Fleet in numbers.
type Summary struct {
	// Taken are the steps that the server took, Left those that were not
	// attempted: a step before them failed, or the pass was cut short.
	Taken, Left Steps
	// Failed counts the steps that failed, Held the holds.
	Failed, Held int
	// Writes counts every step that writes something or would, also those
	// that Taken and Left leave out.
	Writes int
	Caches Caches
}

// Summarize counts.
func Summarize(f Fleet) Summary {
	s := Summary{Caches: Caches{Total: f.Total}}
	for _, r := range f.Caches {
		s.addReport(r)
	}
	c := &s.Caches
	c.Settled = max(0, c.Total-c.Progressing-c.Stalled-c.Failed)
	return s
}

func (s *Summary) addReport(r plan.Report) {
	s.Held += len(r.Plan.Holds)
	switch r.Verdict.State {
	case plan.Progressing:
		s.Caches.Progressing++
	case plan.Stalled:
		s.Caches.Stalled++
	case plan.NotDone:
		s.Caches.Failed++
	}
	for _, o := range r.Outcomes {
		switch o.Result {
		case plan.Failed:
			s.Failed++
		case plan.Unchanged:
		default:
			s.Writes++
			s.Taken.add(o.Step, o.Result)
		}
	}
	for _, step := range left(r) {
		s.Writes++
		s.Left.add(step, expected[step.Action])
	}
}

// expected is what the server answers to a step that goes well.
var expected = map[plan.Action]plan.Result{
	plan.ActionCreate:  plan.Created,
	plan.ActionChange:  plan.Configured,
	plan.ActionDelete:  plan.Deleted,
	plan.ActionRelease: plan.Released,
}

func (s *Steps) add(step plan.Step, result plan.Result) {
	if result == plan.Released {
		s.Released++
		return
	}
	if step.Target.Kind == v1.Kind {
		// The finalizer: ours to keep in order, nothing that a person reading
		// a plan has to weigh.
		return
	}
	switch result {
	case plan.Created:
		s.Created++
	case plan.Configured:
		s.Changed++
		s.Restarts += int(step.Restarts)
	case plan.Deleted:
		s.Deleted++
	}
}

// left are the steps of the plan that were not attempted.
func left(r plan.Report) []plan.Step {
	type key struct {
		action plan.Action
		target plan.Ref
	}
	attempted := map[key]bool{}
	for _, o := range r.Outcomes {
		attempted[key{o.Step.Action, o.Step.Target}] = true
	}
	var steps []plan.Step
	for _, step := range r.Plan.Steps {
		if !attempted[key{step.Action, step.Target}] {
			steps = append(steps, step)
		}
	}
	return steps
}

// planned are the steps that a pass would take: those of a dry run, and those
// that no dry run can try because they need an earlier one.
func (s Summary) planned() Steps {
	return Steps{
		Created:  s.Taken.Created + s.Left.Created,
		Changed:  s.Taken.Changed + s.Left.Changed,
		Deleted:  s.Taken.Deleted + s.Left.Deleted,
		Released: s.Taken.Released + s.Left.Released,
		Restarts: s.Taken.Restarts + s.Left.Restarts,
	}
}

// Plan is the stable line that says what a pass would do.
func (s Summary) Plan() string {
	t := s.planned()
	line := fmt.Sprintf("Plan: %d create, %d change%s, %d delete", t.Created, t.Changed, restarts(t.Restarts), t.Deleted)
	if t.Released > 0 {
		line += fmt.Sprintf(", %d release", t.Released)
	}
	line += fmt.Sprintf("; %d held", s.Held)
	// A step that failed makes its cache fail too: not to be counted twice.
	if failed := max(s.Failed, s.Caches.Failed); failed > 0 {
		line += fmt.Sprintf(", %d failed", failed)
	}
	return line
}

// Done is the stable line that says what a pass did.
func (s Summary) Done() string {
	t, c := s.Taken, s.Caches
	line := fmt.Sprintf("Done: %d created, %d changed%s, %d deleted", t.Created, t.Changed, restarts(t.Restarts), t.Deleted)
	if t.Released > 0 {
		line += fmt.Sprintf(", %d released", t.Released)
	}
	caches := "caches"
	if c.Total == 1 {
		caches = "cache"
	}
	return line + fmt.Sprintf("; %d held, %d failed; %d %s: %d settled, %d progressing, %d stalled, %d failed",
		s.Held, s.Failed, c.Total, caches, c.Settled, c.Progressing, c.Stalled, c.Failed)
}

func restarts(nodes int) string {
	switch nodes {
	case 0:
		return ""
	case 1:
		return " (1 node restarts)"
	default:
		return fmt.Sprintf(" (%d nodes restart)", nodes)
	}
}
