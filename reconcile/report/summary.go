package report

import (
	"fmt"

	"example.com/clusteredcache/reconcile/model"
)

// Steps counts steps on children, and removals of our finalizer from caches.
type Steps struct {
	Created, Changed, Deleted, Finalized int
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
	// Taken are the steps that the server took, Left those that it was not
	// asked for: a step before them failed, the pass was cut short, or they are
	// estimated.
	Taken, Left Steps
	// Failed counts the steps that failed, Held the holds. Estimated counts
	// those steps of Left that are estimated.
	Failed, Held, Estimated int
	// Writes counts every step that writes something or would, also those
	// that Taken and Left leave out.
	Writes int
	// Edited counts the caches that a manifest makes or changes.
	Edited int
	Caches Caches
	// Unlisted counts the namespaces that may not be listed.
	Unlisted int
}

// Summarize counts.
func Summarize(f model.Fleet) Summary {
	s := Summary{Caches: Caches{Total: f.Total}, Unlisted: len(f.Unlisted)}
	for _, r := range f.Caches {
		s.addReport(r)
	}
	c := &s.Caches
	c.Settled = max(0, c.Total-c.Progressing-c.Stalled-c.Failed)
	return s
}

func (s *Summary) addReport(r model.CacheReport) {
	s.Held += len(r.Plan.Holds)
	switch r.Verdict.State {
	case model.Progressing:
		s.Caches.Progressing++
	case model.Stalled:
		s.Caches.Stalled++
	case model.NotDone:
		s.Caches.Failed++
	}
	if r.Edited() {
		s.Edited++
	}
	for _, o := range outcomes(r) {
		s.addOutcome(o)
	}
}

func (s *Summary) addOutcome(o model.Outcome) {
	if writes(o) {
		s.Writes++
	}
	switch o.Result {
	case model.Failed:
		s.Failed++
	case model.Unchanged:
	case model.Estimated:
		if s.Left.add(o.Step, expected[o.Step.Action]) {
			s.Estimated++
		}
	case notAttempted:
		s.Left.add(o.Step, expected[o.Step.Action])
	default:
		s.Taken.add(o.Step, o.Result)
	}
}

// Changes tells whether anything would change, or did: a write or an edit.
// Holds, warnings and the status that follows are no changes.
func (s Summary) Changes() bool { return s.Writes+s.Edited > 0 }

// add counts a step, and tells whether it is one that is counted.
func (s *Steps) add(step model.Step, result model.Result) bool {
	switch {
	case result == model.Finalized:
		s.Finalized++
	case step.Target.Kind == model.KindCache:
		// The finalizer: ours to keep in order, nothing that a person reading
		// a plan has to weigh.
		return false
	case step.Action == model.ActionOwn:
		// The change of the same object that follows is counted.
		return false
	case result == model.Created:
		s.Created++
	case result == model.Configured, result == model.Replaced:
		s.Changed++
		s.Restarts += int(step.Restarts)
	case result == model.Deleted:
		s.Deleted++
	}
	return true
}

// planned are the steps that a pass would take: those of a dry run, and those
// that it did not come to or could not try.
func (s Summary) planned() Steps {
	return Steps{
		Created:   s.Taken.Created + s.Left.Created,
		Changed:   s.Taken.Changed + s.Left.Changed,
		Deleted:   s.Taken.Deleted + s.Left.Deleted,
		Finalized: s.Taken.Finalized + s.Left.Finalized,
		Restarts:  s.Taken.Restarts + s.Left.Restarts,
	}
}

// Plan is the stable line that says what a pass would do.
func (s Summary) Plan() string {
	t := s.planned()
	line := fmt.Sprintf("Plan: %d create, %d change%s, %d delete", t.Created, t.Changed, restarts(t.Restarts), t.Deleted)
	if t.Finalized > 0 {
		line += fmt.Sprintf(", %d finalize", t.Finalized)
	}
	line += fmt.Sprintf("; %d held", s.Held)
	if s.Edited > 0 {
		line += fmt.Sprintf(", %d edited", s.Edited)
	}
	if s.Estimated > 0 {
		line += fmt.Sprintf(", %d estimated", s.Estimated)
	}
	// A step that failed makes its cache fail too: not to be counted twice.
	if failed := max(s.Failed, s.Caches.Failed); failed > 0 {
		line += fmt.Sprintf(", %d failed", failed)
	}
	return line + unlisted(s.Unlisted)
}

// Done is the stable line that says what a pass did.
func (s Summary) Done() string {
	t := s.Taken
	line := fmt.Sprintf("Done: %d created, %d changed%s, %d deleted", t.Created, t.Changed, restarts(t.Restarts), t.Deleted)
	if t.Finalized > 0 {
		line += fmt.Sprintf(", %d finalized", t.Finalized)
	}
	return line + fmt.Sprintf("; %d held, %d failed; %s", s.Held, s.Failed, s.cachesLine())
}

func unlisted(namespaces int) string {
	if namespaces == 0 {
		return ""
	}
	return "; " + count(namespaces, "namespace") + " not listed"
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
