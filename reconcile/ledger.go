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

// While waiting, a cache is looked at again after this long; one that waits
// for something a person has yet to make, less often.
const (
	pollInterval    = 1 * time.Second
	waitingInterval = 10 * time.Second
)

// ledger keeps what there is to say of a run. Its memory grows with the caches
// that had something to do, not with the fleet.
type ledger struct {
	clock    func() time.Time // that of times in plans
	onChange func(Progress)
	all      bool // caches that need nothing are told too

	mu      sync.Mutex
	plain   int // settled at first sight, nothing to say
	reports map[types.NamespacedName]model.CacheReport
	pending map[types.NamespacedName]time.Time // unsettled -> due
	now     Progress
}

// newLedger returns an empty ledger. With all, the report has every cache: those
// too that need nothing.
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

// record takes what a pass says of one cache.
func (l *ledger) record(key types.NamespacedName, r model.CacheReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Done++
	if r.Verdict.State == model.NotDone {
		l.now.Failed++
	}
	before, known := l.reports[key]
	if known && r.Verdict.Reason == v1.ReasonInterrupted {
		// What was seen of it before says more.
		r.Verdict, r.Plan, r.Standing = before.Verdict, before.Plan, before.Standing
	}
	delete(l.pending, key)
	if r.Verdict.State == model.Progressing || r.Verdict.Reason == v1.ReasonApplyFailed || r.Verdict.Reason == v1.ReasonInterrupted {
		l.pending[key] = time.Now().Add(interval(r.Plan, l.clock()))
	}
	switch {
	case known:
		// What earlier passes of this run did stays said.
		r.Outcomes = append(unsaid(before.Outcomes, nil), r.Outcomes...)
		r.StatusWritten = r.StatusWritten || before.StatusWritten
		l.reports[key] = r
	case nothingToSay(r) && !l.all:
		l.plain++
	default:
		l.reports[key] = r
	}
	// What the server returned has served its purpose.
	for i := range r.Outcomes {
		r.Outcomes[i].Object = nil
	}
	l.tell()
}

// nothingToSay tells a cache that is as it should be and was before.
func nothingToSay(r model.CacheReport) bool {
	return r.Verdict.State == model.Settled && r.Verdict.Reason != v1.ReasonRolloutPaused && len(r.Outcomes) == 0 && len(r.Plan.Holds) == 0 && !r.StatusWritten && !r.Edited()
}

// interval is how long to wait before looking again.
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

func (l *ledger) unsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}

// due lists the unsettled caches that it is time to look at again, those first
// that have waited longest.
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

// postpone lets no unsettled cache be due earlier than in a while.
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

// nextDue is when the first unsettled cache is due.
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

func (l *ledger) progress() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell()
}

func (l *ledger) tell() {
	l.now.Waiting = len(l.pending)
	if l.onChange != nil {
		l.onChange(l.now)
	}
}

// fleet is the report, sorted.
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

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
