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

// Options are the options of Run and Look.
type Options struct {
	Scope observe.Scope
	// Manifests, if not nil, replaces Scope. Run then plans the caches in it as if
	// the manifests were applied, so it needs a dry-run client. Look then compares
	// the stored spec of each cache with its manifest.
	Manifests *manifest.Set
	// Concurrency is the number of caches that are visited at the same time (at
	// least 1).
	Concurrency int
	// Wait repeats passes over the caches that have not settled until each has
	// settled or stalled. Timeout limits the waiting, and ends it even in the
	// middle of a pass. 0 means no limit.
	Wait    bool
	Timeout time.Duration
	// LingerUntil repeats passes like Wait until this time. It is not an error if
	// caches have not settled by then. The zero value means no repetition. Look
	// ignores it.
	LingerUntil time.Time
	// Estimate, if not nil, decides which refusals of the server make a step
	// estimated instead of failed. It returns the reason, or "" for a failure.
	Estimate func(error) string
	// Events makes Run also write changes as Events of the caches.
	Events bool
	// Nodes requests the single nodes of settled caches too.
	Nodes bool
	// Now is the clock of the API server. Caches are judged by the times that the
	// server wrote. If Now is nil, the clock of the machine is used. Now may be
	// wrong until the first answer arrives.
	Now func() time.Time
	// Progress, if not nil, is called after every cache and before every wait.
	// Calls never overlap.
	Progress func(Progress)
}

// Progress describes how far a run is.
type Progress struct {
	// Done and Failed count caches of the current pass. Waiting counts those that
	// Wait or LingerUntil still waits for.
	Done, Failed, Waiting int
}

// Run makes one pass over the caches in scope. With Wait or LingerUntil it makes as
// many as necessary. It returns what it did, or with a dry-run client what it would
// do.
//
// The error means that a pass could not run, or that the API server cut it short.
// Even then the report holds what is known. If only some of several namespaces may
// not be listed, the report names them, and the error is nil.
//
// When ctx ends, Run starts no further step and leaves each cache between two
// steps.
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

// Look reports how each cache in scope stands. It makes the same judgement as Run
// would after a pass that writes nothing.
func Look(ctx context.Context, c client.Reader, o Options) (model.Fleet, error) {
	o.LingerUntil, o.Events = time.Time{}, false
	r, end := newRunner(ctx, o, newLedger(o, true))
	defer end()
	reader := observe.NewReader(patientReader{c, r.patience})
	return r.run(ctx, expected{fleet{&stages{options: o, now: r.ledger.clock, reader: reader}}, o.Manifests})
}

// runner repeats passes until the work that the options ask for is done.
type runner struct {
	options  Options
	ledger   *ledger
	patience *patience
	// passCtx limits a pass, and waitCtx limits the repetition of passes.
	passCtx, waitCtx context.Context
}

// newRunner returns a runner, and a function that ends its contexts. Timeout also
// ends a pass. LingerUntil only adds passes.
func newRunner(ctx context.Context, o Options, l *ledger) (*runner, context.CancelFunc) {
	waitCtx, end := waitContext(ctx, o)
	passCtx := ctx
	if o.Wait {
		passCtx = waitCtx
	}
	longest := maxThrottled
	if !o.LingerUntil.IsZero() { // the run must end by that time
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

// waitContext returns a context that ends when waiting ends. Without Wait and
// LingerUntil it has already ended.
func waitContext(ctx context.Context, o Options) (context.Context, context.CancelFunc) {
	switch {
	case o.Wait && o.Timeout > 0:
		return context.WithTimeout(ctx, o.Timeout)
	case o.Wait:
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, o.LingerUntil)
}

// run makes a pass over the caches of m, and further ones as the options require.
func (r *runner) run(ctx context.Context, m mode) (model.Fleet, error) {
	defer r.patience.end()
	err := r.pass(m, listing, m.caches)
	var unlisted *observe.UnlistedError
	if errors.As(err, &unlisted) {
		err = nil // the run continues with the other namespaces
	}
	seen := err == nil // whether every cache was seen
	r.patience.endWith(r.waitCtx)
	for err == nil && r.ledger.unsettled() > 0 && r.pause() {
		err = r.pass(m, waiting, r.unsettled(m))
	}
	f := r.ledger.fleet()
	if unlisted != nil {
		f.Unlisted = unlisted.Namespaces
	}
	if f.Interrupted = ctx.Err() != nil; f.Interrupted {
		err = nil // the end of ctx cut the reads short
	}
	f.Waited = r.options.Wait
	if err != nil && r.passCtx.Err() != nil && judge(err, waiting) != everyCache {
		// Timeout ended the pass, not a fault of the server.
		if f.TimedOut = true; !seen {
			f.Incomplete = fmt.Sprintf("--timeout ended the pass before all caches were seen (%v)", err)
		}
		err = nil
	}
	f.TimedOut = f.TimedOut || f.Waited && !f.Interrupted && err == nil && r.ledger.unsettled() > 0
	return f, err
}

// unsettled yields the unsettled caches that are due, until waiting ends. It stops
// after a cache that could not be read, because a server in trouble must not be
// asked in a loop. The next pass begins with the other caches, so that one cache
// does not hide them.
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

// pause waits until an unsettled cache is due. It returns false if waiting has
// ended.
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
