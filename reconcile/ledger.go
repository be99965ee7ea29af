package reconcile

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// pollInterval and waitingInterval are how long a run waits before it reads a cache
// again. The longer one is for a cache that waits for a person to create something.
const (
	pollInterval    = 1 * time.Second
	waitingInterval = 10 * time.Second
)

// ledger collects the reports of a run. Its memory grows with the caches that had
// work, not with the fleet.
type ledger struct {
	clock    func() time.Time // for the times in plans
	onChange func(Progress)
	all      bool // also report caches that need nothing

	mu      sync.Mutex
	plain   int // caches without a report: settled at once
	reports map[types.NamespacedName]model.CacheReport
	pending map[types.NamespacedName]time.Time // when each unsettled cache is due
	now     Progress
}

// newLedger returns an empty ledger. The argument all makes it report every cache,
// even those that need nothing.
func newLedger(o Options, all bool) *ledger {
	clock := o.Now
	if clock == nil {
		clock = time.Now
	}
	return &ledger{
		clock:    clock,
		onChange: o.Progress,
		all:      all,
		reports:  map[types.NamespacedName]model.CacheReport{},
		pending:  map[types.NamespacedName]time.Time{},
	}
}

// begin starts the counts of a pass.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Done, l.now.Failed = 0, 0
}

// record adds the report of one cache.
func (l *ledger) record(key types.NamespacedName, r model.CacheReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Done++
	if r.Verdict.State == model.NotDone {
		l.now.Failed++
	}
	before, known := l.reports[key]
	if known && r.Verdict.Reason == v1.ReasonInterrupted {
		// The earlier report holds more information.
		r.Verdict, r.Plan, r.Standing = before.Verdict, before.Plan, before.Standing
	}
	delete(l.pending, key)
	if r.Verdict.State == model.Progressing || r.Verdict.Reason == v1.ReasonApplyFailed || r.Verdict.Reason == v1.ReasonInterrupted {
		l.pending[key] = time.Now().Add(interval(r.Plan, l.clock()))
	}
	switch {
	case known:
		// Outcomes of earlier passes of this run remain in the report.
		r.Outcomes = append(unsaid(before.Outcomes, nil), r.Outcomes...)
		r.StatusWritten = r.StatusWritten || before.StatusWritten
		l.reports[key] = r
	case nothingToSay(r) && !l.all:
		l.plain++
	default:
		l.reports[key] = r
	}
	// The objects that the server returned are not needed any more.
	for i := range r.Outcomes {
		r.Outcomes[i].Object = nil
	}
	l.notify()
}

// nothingToSay reports whether a cache was already as it should be, and needs no
// report.
func nothingToSay(r model.CacheReport) bool {
	return r.Verdict.State == model.Settled && r.Verdict.Reason != v1.ReasonRolloutPaused && len(r.Outcomes) == 0 && len(r.Plan.Holds) == 0 && !r.StatusWritten && !r.Edited()
}

// interval returns how long to wait before the cache is read again.
func interval(p model.Plan, now time.Time) time.Duration {
	wait := pollInterval
	for i, h := range p.Holds {
		due := pollInterval
		switch {
		case h.Reason == v1.ReasonConfigMapNotFound:
			due = waitingInterval
		case !h.Until.IsZero():
			due = min(max(h.Until.Sub(now), pollInterval/10), waitingInterval)
		}
		if i == 0 || due < wait {
			wait = due
		}
	}
	return wait
}

// unsettled returns the number of unsettled caches.
func (l *ledger) unsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}

// due returns the unsettled caches that should be read again now. The one that is
// due the longest comes first.
func (l *ledger) due(now time.Time) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []types.NamespacedName
	for key, at := range l.pending {
		if !at.After(now) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(l.pending[a].Compare(l.pending[b]), compareNames(a, b))
	})
	return keys
}

// postpone delays every unsettled cache so that none is due before the given time
// has passed.
func (l *ledger) postpone(while time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	earliest := time.Now().Add(while)
	for key, at := range l.pending {
		if at.Before(earliest) {
			l.pending[key] = earliest
		}
	}
}

// nextDue returns when the first unsettled cache is due.
func (l *ledger) nextDue() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next time.Time
	for _, at := range l.pending {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// progress calls the callback outside of a record.
func (l *ledger) progress() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify()
}

// notify calls the callback, if there is one. The caller holds the lock.
func (l *ledger) notify() {
	l.now.Waiting = len(l.pending)
	if l.onChange != nil {
		l.onChange(l.now)
	}
}

// fleet returns the sorted report.
func (l *ledger) fleet() model.Fleet {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := model.Fleet{Total: l.plain + len(l.reports)}
	for _, r := range l.reports {
		f.Caches = append(f.Caches, r)
	}
	slices.SortFunc(f.Caches, func(a, b model.CacheReport) int { return compareNames(a.Key(), b.Key()) })
	return f
}

// compareNames orders by namespace, then by name.
func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
