package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// Options of a Run.
type Options struct {
	Scope observe.Scope
	// Concurrency is the number of caches worked on at the same time (at least 1).
	Concurrency int
	// Wait repeats passes over the caches that have not settled until all
	// have, each either settled or stalled, or Timeout has passed (0: none),
	// be it in the middle of a pass.
	Wait    bool
	Timeout time.Duration
	// LingerUntil does the same as Wait until this time without insisting;
	// zero: no lingering.
	LingerUntil time.Time
	// Manifests, if not nil, take the place of Scope: the caches in them are
	// planned as if the manifests were applied. For a dry-run client only.
	Manifests *manifest.Set
	// Estimate, if not nil, decides which refusals of the server make a step
	// estimated instead of failed: it returns the reason, "" for a failure.
	Estimate func(error) string
	// Events: what changed is told in Events of the caches too.
	Events bool
	// Nodes: single nodes of caches that have settled are observed as well.
	Nodes bool
	// Expect, if not nil, takes the place of Scope: the caches in it, whose
	// stored spec must be that of the manifest. For Look only.
	Expect *manifest.Set
	// Now is the clock of the API server, with whose times caches are judged; nil:
	// the machine's. It may be off until the first answer has come.
	Now func() time.Time
	// Progress, if not nil, is called after every cache and before every wait.
	// It is never called twice at the same time.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	// Done and Failed count caches of the current pass; Waiting counts those
	// that --wait or --linger still waits for.
	Done, Failed, Waiting int
}

// Run makes one pass over the caches in scope, or with Wait or LingerUntil as
// many as it takes, and says what it did. Hand it a dry-run client and it says
// what it would do. The error is for a pass that could not run or was cut
// short by the API server; what it knows is in the report all the same. A
// namespace, one of several, that may not be listed is in the report alone. When
// ctx ends, caches are left at a step boundary and nothing new is started.
func Run(ctx context.Context, c client.Client, o Options) (model.Fleet, error) {
	p := newPatience()
	r := &runner{
		options:  o,
		reader:   observe.NewReader(patientReader{c, p}),
		writer:   apply.NewWriter(patientClient{c, p}, o.Estimate),
		ledger:   newLedger(o.Progress),
		patience: p,
	}
	r.visit = r.round
	caches := r.fleet
	if o.Manifests != nil {
		caches = r.supposed
	}
	return r.run(ctx, caches)
}

// run makes a pass over caches, and further ones as the options say.
func (r *runner) run(ctx context.Context, caches source) (model.Fleet, error) {
	o := r.options
	if r.now = o.Now; r.now == nil {
		r.now = time.Now
	}
	r.ledger.clock = r.now
	waiting, end := waitContext(ctx, o)
	defer end()
	// Timeout ends a pass as well. Lingering only adds passes.
	passing := ctx
	if o.Wait {
		passing = waiting
	}
	defer r.patience.until(passing)()
	if !o.LingerUntil.IsZero() { // who lingers has a time by which to be gone
		r.patience.longest = min(maxThrottled, time.Until(o.LingerUntil))
	}
	err := r.pass(passing, caches)
	var unlisted *observe.UnlistedError
	if errors.As(err, &unlisted) {
		err = nil // the other namespaces are worth going on for
	}
	seen := err == nil                // all caches
	defer r.patience.until(waiting)() // what lingering adds ends with it
	for err == nil && r.ledger.unsettled() > 0 && r.pause(waiting) {
		err = r.pass(passing, r.again(waiting))
	}
	f := r.ledger.fleet()
	if unlisted != nil {
		f.Unlisted = unlisted.Namespaces
	}
	if f.Interrupted = ctx.Err() != nil; f.Interrupted {
		err = nil // reads that the end of ctx cut short
	}
	f.Waited = o.Wait
	if err != nil && passing.Err() != nil && !apply.Lasting(err) {
		// Timeout came first.
		if f.TimedOut = true; !seen {
			f.Incomplete = fmt.Sprintf("--timeout ended the pass before all caches were seen (%v)", err)
		}
		err = nil
	}
	f.TimedOut = f.TimedOut || o.Wait && !f.Interrupted && err == nil && r.ledger.unsettled() > 0
	return f, err
}

type runner struct {
	options Options
	reader  *observe.Reader
	writer  *apply.Writer
	ledger  *ledger
	now     func() time.Time
	// patience of all requests.
	patience *patience
	// visit brings one cache closer to its spec, or only looks at it.
	visit func(context.Context, model.Input, *model.CacheReport) error
	// warned: it was said that Events cannot be written.
	warned sync.Once
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

// fleet yields all caches in scope.
func (r *runner) fleet(ctx context.Context, yield func(observe.Item) bool) error {
	return r.reader.Fleet(ctx, r.options.Scope, yield)
}

// again yields the caches that the last passes left unsettled and that are due,
// until waiting ends. A read that fails and may yet succeed is that cache's
// failure, and is tried again like all that has not settled. It ends this look:
// a server in trouble is not asked in a loop. The next look begins with the
// others, so that one cache which cannot be read does not hide them.
func (r *runner) again(waiting context.Context) source {
	return func(_ context.Context, yield func(observe.Item) bool) error {
		for _, key := range r.ledger.due(time.Now()) {
			in, err := r.reader.One(waiting, key)
			failed := err != nil && !ofThisCache(err)
			switch {
			case waiting.Err() != nil:
				return nil
			case failed && apply.Lasting(err):
				return err
			case failed:
				slog.Warn("a cache could not be read; it is tried again", "cache", key, "error", err)
				r.ledger.postpone(pollInterval)
			case errors.Is(err, observe.ErrNotFound):
				err = errGone
			}
			if !yield(observe.Item{Key: key, Input: in, Err: err}) || failed {
				return nil
			}
		}
		return nil
	}
}

// pause waits until an unsettled cache is due; false when waiting is over.
func (r *runner) pause(ctx context.Context) bool {
	r.ledger.progress()
	timer := time.NewTimer(time.Until(r.ledger.nextDue()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
