package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/plan"
	"example.com/clusteredcache/reconcile/status"
)

// source yields the caches of a pass.
type source func(ctx context.Context, yield func(observe.Item) bool) error

// pass walks the caches that from yields, Concurrency at a time. Its error ends
// the run: a list that could not be read, an error that every cache would meet,
// or the end of ctx.
func (r *runner) pass(ctx context.Context, from source) error {
	r.ledger.begin()
	work := make(chan observe.Item)
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	var workers sync.WaitGroup
	for range max(1, r.options.Concurrency) {
		workers.Go(func() {
			for item := range work {
				report, err := r.guarded(ctx, item)
				if err != nil {
					abort(err)
				}
				r.ledger.record(item.Key, report)
			}
		})
	}
	cut := false
	var now time.Time // one for the pass
	err := from(ctx, func(item observe.Item) bool {
		if now.IsZero() {
			now = r.now()
		}
		item.Input.Now = now
		select {
		case work <- item:
			return true
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
	if err == nil && cut {
		return ctx.Err()
	}
	return err
}

// guarded keeps a fault in our own code to the cache that met it.
func (r *runner) guarded(ctx context.Context, item observe.Item) (report model.CacheReport, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			slog.Error("panic", "cache", item.Key, "fault", fault, "stack", string(debug.Stack()))
			report = model.CacheReport{Namespace: item.Key.Namespace, Name: item.Key.Name, Verdict: model.Verdict{
				State: model.NotDone, Reason: v1.ReasonPanic,
				Message: fmt.Sprintf("a fault in clusteredcache itself (%v); please report it with the stack in the log", fault),
			}}
		}
	}()
	return r.cache(ctx, item)
}

// A cache that changes between our reads and writes is observed and planned
// again this often, then left to the next pass.
const maxRounds = 5

// cache brings one cache a step closer: plan, apply, status; again from a new
// observation when the cluster has moved on in between. The error is one that
// every other cache would meet as well.
func (r *runner) cache(ctx context.Context, item observe.Item) (model.CacheReport, error) {
	report := model.CacheReport{Namespace: item.Key.Namespace, Name: item.Key.Name}
	if item.Err != nil {
		report.Verdict = r.unseen(item.Err)
		return report, nil
	}
	in := item.Input
	for round := 1; ; round++ {
		err := r.visit(ctx, in, &report)
		switch {
		case err == nil && !passing(report):
			return report, nil
		case ctx.Err() != nil:
			report.Verdict = interrupted
			return report, nil
		case apply.Fatal(err):
			report.Verdict = unobserved(err)
			return report, err
		case err != nil && !errors.Is(err, apply.ErrStale) && !errors.Is(err, apply.ErrBusy):
			report.Verdict = unobserved(err)
			return report, nil
		case round == maxRounds || errors.Is(err, apply.ErrBusy):
			if err != nil {
				report.Verdict = model.Verdict{State: model.Progressing, Reason: v1.ReasonProgressing,
					Message: fmt.Sprintf("the cache or its children keep changing (%v); the next pass goes on", err)}
			}
			return report, nil
		}
		if round > 1 || err == nil {
			time.Sleep(time.Duration(round) * time.Duration(100+rand.IntN(200)) * time.Millisecond)
		}
		now := in.Now
		in, err = r.observe(ctx, item.Key)
		in.Now = now
		switch {
		case ctx.Err() != nil:
			report.Verdict = interrupted
			return report, nil
		case apply.Fatal(err):
			report.Verdict = unobserved(err)
			return report, err
		case errors.Is(err, observe.ErrNotFound):
			err = errGone
			fallthrough
		case err != nil:
			report.Verdict = r.unseen(err)
			return report, nil
		}
	}
}

// round plans and applies once, and writes the status.
func (r *runner) round(ctx context.Context, in model.Input, report *model.CacheReport) error {
	in, err := r.complete(ctx, in)
	if err != nil {
		return err
	}
	report.Plan, report.Edit = plan.For(in), in.Edit
	done, err := r.writer.Execute(ctx, in, report.Plan)
	report.Outcomes = append(earlier(report.Outcomes, done.Outcomes), done.Outcomes...)
	if err != nil {
		return err
	}
	intent, verdict := status.For(in, report.Plan, done.Outcomes)
	report.Verdict = verdict
	if in.Edit != nil {
		return nil // what is only supposed has no status to write
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if intent == nil {
		return nil
	}
	if len(fields.Compare(intent, in.Cache, "status")) > 0 {
		report.StatusWritten, err = r.writer.Status(ctx, in.Cache, intent, done.CacheVersion)
		if err != nil && verdict.State == model.NotDone && !errors.Is(err, apply.ErrStale) {
			return nil // the failure that the status would have told is the one to tell
		}
		if err != nil {
			return err
		}
	}
	r.tell(ctx, in, status.Events(in, done.Outcomes, verdict))
	return nil
}

// tell writes Events. They are a service: without the right to write them the
// pass is as good, and says so once.
func (r *runner) tell(ctx context.Context, in model.Input, events []model.Event) {
	if !r.options.Events || len(events) == 0 {
		return
	}
	if err := r.writer.Events(ctx, in.Cache, metav1.NewMicroTime(in.Now), events); err != nil {
		r.warned.Do(func() { slog.Warn("Events cannot be written; all else is done", "error", err) })
	}
}

// complete observes what only some caches need.
func (r *runner) complete(ctx context.Context, in model.Input) (model.Input, error) {
	var err error
	if in.Config, err = r.config(ctx, in); err != nil {
		return in, err
	}
	if in.OldClaims, err = r.reader.OldClaims(ctx, in); err != nil {
		return in, err
	}
	if in.Cache.DeletionTimestamp != nil {
		in.Now = r.now() // clients get their time to leave, however long the pass has taken so far
	}
	if in.Deletion, err = r.reader.Deletion(ctx, in.Cache); err != nil {
		return in, err
	}
	everything := r.options.Nodes && in.Live.Owned(in.Cache).StatefulSet != nil
	if everything || plan.NeedsNodes(in) {
		if in.Nodes, err = r.reader.Nodes(ctx, in); err != nil {
			return in, err
		}
	}
	if everything && in.Cache.Spec.Storage != nil || plan.NeedsVolumes(in) {
		in.Volumes, err = r.reader.Volumes(ctx, in)
	}
	return in, err
}

// earlier keeps of the outcomes of earlier rounds what is still to be said:
// not a failure, which was tried again, and not what a later round says anew
// (in a dry run it does everything again).
func earlier(outcomes, later []model.Outcome) []model.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o model.Outcome) bool {
		return o.Result == model.Failed || slices.ContainsFunc(later, func(l model.Outcome) bool {
			return l.Step.Action == o.Step.Action && l.Step.Target == o.Step.Target
		})
	})
}

// passing tells a report whose only failures may be gone at the next try.
func passing(report model.CacheReport) bool {
	failed := 0
	for _, o := range report.Outcomes {
		if o.Result == model.Failed {
			if o.Rejected || apierrors.IsTooManyRequests(o.Err) { // it was waited for
				return false
			}
			failed++
		}
	}
	return failed > 0
}

// interrupted is the verdict on a cache in whose middle the run ended.
var interrupted = model.Verdict{State: model.NotDone, Reason: v1.ReasonInterrupted, Message: "ended before the cache was done; the next pass goes on"}

// errGone is said of a cache that was there earlier in the run.
var errGone = errors.New("deleted meanwhile")

func unobserved(err error) model.Verdict {
	v := model.Verdict{State: model.NotDone, Reason: v1.ReasonApplyFailed, Message: err.Error()}
	switch {
	case errors.Is(err, errGone):
		v.State, v.Reason = model.Settled, v1.ReasonGone
	case errors.Is(err, observe.ErrNotFound):
		v.Reason = v1.ReasonNotFound
	case errors.Is(err, observe.ErrUndecodable):
		v.Reason = v1.ReasonUndecodable
	case errors.Is(err, apply.ErrRefused), errors.As(err, new(*manifest.Error)):
		v.Reason = v1.ReasonApplyRejected
	}
	return v
}

// ofThisCache tells an error that says nothing about other caches.
func ofThisCache(err error) bool {
	return errors.Is(err, apply.ErrStale) || errors.Is(err, apply.ErrRefused) || errors.Is(err, observe.ErrNotFound) || errors.Is(err, observe.ErrUndecodable)
}
