package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// pass visits the caches that from yields, Concurrency at a time. An error ends the
// run. It is a list that could not be read, an error that every cache would meet,
// or the end of the context.
func (r *runner) pass(m mode, during activity, from source) error {
	r.ledger.begin()
	ctx, abort := context.WithCancelCause(r.passCtx)
	defer abort(nil)
	work := make(chan observe.Item)
	workers := r.workers(ctx, m, work, abort)
	cut := false
	var now time.Time // the same for all caches of the pass
	var unread error
	err := from(ctx, func(item observe.Item) bool {
		if now.IsZero() {
			now = r.ledger.clock()
		}
		item.Input.Now = now
		more := true
		if item.Err != nil {
			switch judge(item.Err, during) {
			case everyCache:
				unread = item.Err
				return false
			case nextPass:
				slog.Warn("a cache could not be read; it is tried again", "cache", item.Key, "error", item.Err)
				r.ledger.postpone(pollInterval)
				more = false
			}
		}
		select {
		case work <- item:
			return more
		case <-ctx.Done():
			cut = true
			return false
		}
	})
	close(work)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	switch {
	case unread != nil:
		return unread
	case err == nil && cut:
		return ctx.Err()
	}
	return err
}

// workers starts the goroutines that visit the caches from work.
func (r *runner) workers(ctx context.Context, m mode, work <-chan observe.Item, abort context.CancelCauseFunc) *sync.WaitGroup {
	var group sync.WaitGroup
	for range max(1, r.options.Concurrency) {
		group.Go(func() {
			for item := range work {
				report, err := guarded(ctx, m, item)
				if err != nil {
					abort(err)
				}
				r.ledger.record(item.Key, report)
			}
		})
	}
	return &group
}

// guarded visits one cache. A panic makes only that cache fail.
func guarded(ctx context.Context, m mode, item observe.Item) (r model.CacheReport, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			slog.Error("panic", "cache", item.Key, "fault", fault, "stack", string(debug.Stack()))
			r = model.CacheReport{Namespace: item.Key.Namespace, Name: item.Key.Name, Verdict: model.Verdict{
				State: model.NotDone, Reason: v1.ReasonPanic,
				Message: fmt.Sprintf("a fault in clusteredcache itself (%v); please report it with the stack in the log", fault),
			}}
		}
	}()
	return cache(ctx, m, item)
}

// maxRounds is how often a cache that changes between our reads and writes is
// observed and planned in one pass. After that it is left to the next pass.
const maxRounds = 5

// cache visits one cache. It starts again from a new observation if the cluster has
// changed in between. The error is one that every other cache would meet too.
func cache(ctx context.Context, m mode, item observe.Item) (model.CacheReport, error) {
	r := model.CacheReport{Namespace: item.Key.Namespace, Name: item.Key.Name}
	in, err := item.Input, item.Err
	for round := 1; ; round++ {
		if err == nil {
			err = m.visit(ctx, in, &r)
		}
		what := again
		switch {
		case err != nil:
			what = judge(err, visiting)
		case !tryAgain(r.Outcomes):
			return r, nil
		}
		switch {
		case ctx.Err() != nil:
			r.Verdict = interrupted
			return r, nil
		case what == everyCache:
			r.Verdict = unobserved(err)
			return r, err
		case what == thisCache:
			r.Verdict = m.unseen(err)
			return r, nil
		case what == nextPass || round == maxRounds:
			if err != nil {
				r.Verdict = model.Verdict{State: model.Progressing, Reason: v1.ReasonProgressing,
					Message: fmt.Sprintf("the cache or its children keep changing (%v); the next pass continues", err)}
			}
			return r, nil
		}
		if round > 1 || err == nil {
			time.Sleep(time.Duration(round) * time.Duration(100+rand.IntN(200)) * time.Millisecond)
		}
		now := in.Now
		in, err = m.again(ctx, item.Key)
		in.Now = now
	}
}
