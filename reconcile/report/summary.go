package report

import (
	"fmt"

	"example.com/clusteredcache/reconcile/model"
)

// Steps counts steps on children, and removals of our finalizer from caches.
type Steps struct {
	Created, Changed, Deleted, Finalized int
	// Restarts is the number of nodes that restart because of the changes.
	Restarts int
}

// Caches counts caches by their state. Caches that a Fleet does not list are
// settled.
type Caches struct {
	Total, Settled, Progressing, Stalled, Failed int
}

// Summary holds the numbers of a Fleet.
type Summary struct {
	// Taken counts the steps that the server took. Left counts those that were not
	// sent: an earlier step failed, the pass was cut short, or they are estimated.
	Taken, Left Steps
	// Failed counts the steps that failed, and Held the holds. Estimated counts the
	// steps in Left that are estimated.
	Failed, Held, Estimated int
	// Writes counts every step that writes something or would. It includes steps
	// that Taken and Left omit.
	Writes int
	// Edited counts the caches that a manifest creates or changes.
	Edited int
	Caches Caches
	// Unlisted counts the namespaces that may not be listed.
	Unlisted int
}

// Summarize returns the numbers of f.
func Summarize(f model.Fleet) Summary {
	s := Summary{Caches: Caches{Total: f.Total}, Unlisted: len(f.Unlisted)}
	for _, r := range f.Caches {
		s.addReport(r)
	}
	c := &s.Caches
	c.Settled = max(0, c.Total-c.Progressing-c.Stalled-c.Failed)
	return s
}

// addReport counts one cache.
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

// addOutcome counts one step.
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

// Changes reports whether a write or an edit happened, or would happen. Holds,
// warnings and the resulting status do not count.
func (s Summary) Changes() bool { return s.Writes+s.Edited > 0 }

// add counts a step, and reports whether that step is one of those counted.
func (s *Steps) add(step model.Step, result model.Result) bool {
	switch {
	case result == model.Finalized:
		s.Finalized++
	case step.Target.Kind == model.KindCache:
		// We keep our finalizer in order ourselves. The reader of a plan does not
		// have to consider it.
		return false
	case step.Action == model.ActionOwn:
		// The change that follows on the same object is counted instead.
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

// planned returns the steps that a pass would take. These are the steps of a dry
// run, and the steps that it did not reach or could not try.
func (s Summary) planned() Steps {
	return Steps{
		Created:   s.Taken.Created + s.Left.Created,
		Changed:   s.Taken.Changed + s.Left.Changed,
		Deleted:   s.Taken.Deleted + s.Left.Deleted,
		Finalized: s.Taken.Finalized + s.Left.Finalized,
		Restarts:  s.Taken.Restarts + s.Left.Restarts,
	}
}

// Plan returns the stable line about what a pass would do.
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
	// A failed step also makes its cache fail, so the larger number is used and not
	// the sum.
	if failed := max(s.Failed, s.Caches.Failed); failed > 0 {
		line += fmt.Sprintf(", %d failed", failed)
	}
	return line + unlisted(s.Unlisted)
}

// Done returns the stable line about what a pass did.
func (s Summary) Done() string {
	t := s.Taken
	line := fmt.Sprintf("Done: %d created, %d changed%s, %d deleted", t.Created, t.Changed, restarts(t.Restarts), t.Deleted)
	if t.Finalized > 0 {
		line += fmt.Sprintf(", %d finalized", t.Finalized)
	}
	return line + fmt.Sprintf("; %d held, %d failed; %s", s.Held, s.Failed, s.cachesLine())
}

// unlisted returns the end of a stable line that counts the unlisted namespaces.
func unlisted(namespaces int) string {
	if namespaces == 0 {
		return ""
	}
	return "; " + count(namespaces, "namespace") + " not listed"
}

// restarts returns the words in parentheses about nodes that restart.
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
