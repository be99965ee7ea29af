package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// Options of a Run or a Look.
type Options struct {
	Scope observe.Scope
	// Manifests, if not nil, take the place of Scope. Run plans the caches in them
	// as if the manifests were applied: hand it a dry-run client. Look expects that
	// their stored spec is that of the manifest.
	Manifests *manifest.Set
	// Concurrency is the number of caches worked on at the same time (at least 1).
	Concurrency int
	// Wait repeats passes over the caches that have not settled until each has
	// settled or stalled. Timeout ends that, also in the middle of a pass (0: it
	// does not).
	Wait    bool
	Timeout time.Duration
	// LingerUntil repeats passes like Wait until this time, without insisting; zero:
	// it does not. Look takes no notice of it.
	LingerUntil time.Time
	// Estimate, if not nil, decides which refusals of the server make a step
	// estimated instead of failed: it returns the reason, "" for a failure.
	Estimate func(error) string
	// Events: changes are written as Events of the caches too.
	Events bool
	// Nodes: single nodes of caches that have settled are observed as well.
	Nodes bool
	// Now is the clock of the API server, by whose times caches are judged; nil: the
	// machine's. It may be off until the first answer has come.
	Now func() time.Time
	// Progress, if not nil, is called after every cache and before every wait.
	// It is never called twice at the same time.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	// Done and Failed count caches of the current pass. Waiting counts those that
	// Wait or LingerUntil still waits for.
	Done, Failed, Waiting int
}

// Run makes one pass over the caches in scope, or with Wait or LingerUntil as
// many as it takes, and says what it did. With a dry-run client it says what it
// would do.
//
// The error means that a pass could not run, or that the API server cut it short.
// The report holds what is known all the same. A namespace that may not be listed
// is in the report alone when there are others. When ctx ends, caches are left at
// a step boundary and nothing new is started.
func Run(ctx context.Context, c client.Client, o Options) (model.Fleet, error) {
	r, end := newRunner(ctx, o, newLedger(o, false))
	defer end()
	fleet := fleet{&stages{
		options: o,
		now:     r.ledger.clock,
		reader:  observe.NewReader(patientReader{c, r.patience}),
		writer:  apply.NewWriter(patientClient{c, r.patience}, o.Estimate),
	}}
	if o.Manifests != nil {
		return r.run(ctx, supposed{fleet, o.Manifests})
	}
	return r.run(ctx, fleet)
}

// Look says how the caches in scope stand, each of them, as Run would after a
// pass that writes nothing.
func Look(ctx context.Context, c client.Reader, o Options) (model.Fleet, error) {
	o.LingerUntil, o.Events = time.Time{}, false
	r, end := newRunner(ctx, o, newLedger(o, true))
	defer end()
	reader := observe.NewReader(patientReader{c, r.patience})
	return r.run(ctx, expected{fleet{&stages{options: o, now: r.ledger.clock, reader: reader}}, o.Manifests})
}

// runner repeats passes until all that was asked for is done.
type runner struct {
	options  Options
	ledger   *ledger
	patience *patience
	// passCtx ends a pass, and waitCtx the repetition of passes.
	passCtx, waitCtx context.Context
}

// newRunner returns a runner, and a function that ends its contexts. Timeout ends
// a pass as well. Lingering only adds passes.
func newRunner(ctx context.Context, o Options, l *ledger) (*runner, context.CancelFunc) {
	waitCtx, end := waitContext(ctx, o)
	passCtx := ctx
	if o.Wait {
		passCtx = waitCtx
	}
	longest := maxThrottled
	if !o.LingerUntil.IsZero() { // who lingers has a time by which to be gone
		longest = min(longest, time.Until(o.LingerUntil))
	}
	return &runner{
		options:  o,
		ledger:   l,
		patience: newPatience(passCtx, longest),
		passCtx:  passCtx,
		waitCtx:  waitCtx,
	}, end
}

// waitContext ends when waiting does; without Wait or LingerUntil at once.
func waitContext(ctx context.Context, o Options) (context.Context, context.CancelFunc) {
	switch {
	case o.Wait && o.Timeout > 0:
		return context.WithTimeout(ctx, o.Timeout)
	case o.Wait:
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, o.LingerUntil)
}

// run makes a pass over the caches of m, and further ones as the options say.
func (r *runner) run(ctx context.Context, m mode) (model.Fleet, error) {
	defer r.patience.end()
	err := r.pass(m, listing, m.caches)
	var unlisted *observe.UnlistedError
	if errors.As(err, &unlisted) {
		err = nil // the other namespaces are worth going on for
	}
	seen := err == nil // all caches
	r.patience.endWith(r.waitCtx)
	for err == nil && r.ledger.unsettled() > 0 && r.pause() {
		err = r.pass(m, waiting, r.unsettled(m))
	}
	f := r.ledger.fleet()
	if unlisted != nil {
		f.Unlisted = unlisted.Namespaces
	}
	if f.Interrupted = ctx.Err() != nil; f.Interrupted {
		err = nil // reads that the end of ctx cut short
	}
	f.Waited = r.options.Wait
	if err != nil && r.passCtx.Err() != nil && judge(err, waiting) != everyCache {
		// Timeout came first.
		if f.TimedOut = true; !seen {
			f.Incomplete = fmt.Sprintf("--timeout ended the pass before all caches were seen (%v)", err)
		}
		err = nil
	}
	f.TimedOut = f.TimedOut || f.Waited && !f.Interrupted && err == nil && r.ledger.unsettled() > 0
	return f, err
}

// unsettled yields the caches that the last passes left unsettled and that are
// due, until waiting ends. After a cache that could not be read, this look ends: a
// server in trouble is not asked in a loop. The next look begins with the others,
// so that one cache does not hide them.
func (r *runner) unsettled(m mode) source {
	return func(_ context.Context, yield func(observe.Item) bool) error {
		for _, key := range r.ledger.due(time.Now()) {
			in, err := m.again(r.waitCtx, key)
			if r.waitCtx.Err() != nil || !yield(observe.Item{Key: key, Input: in, Err: err}) {
				return nil
			}
		}
		return nil
	}
}

// pause waits until an unsettled cache is due. It returns false when waiting is
// over.
func (r *runner) pause() bool {
	r.ledger.progress()
	timer := time.NewTimer(time.Until(r.ledger.nextDue()))
	defer timer.Stop()
	select {
	case <-r.waitCtx.Done():
		return false
	case <-timer.C:
		return r.waitCtx.Err() == nil
	}
}
