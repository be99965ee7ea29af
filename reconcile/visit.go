package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/plan"
	"example.com/clusteredcache/reconcile/status"
)

// stages holds what a visit of a cache needs. The pure stages are plain functions.
type stages struct {
	options Options
	now     func() time.Time
	reader  *observe.Reader
	writer  *apply.Writer // nil for Look
	// warned makes the warning about failed Events appear only once.
	warned sync.Once
}

// reconcile brings a cache one step closer to its spec. It observes, plans, applies
// and writes the status.
func (s *stages) reconcile(ctx context.Context, in model.Input, r *model.CacheReport) error {
	in, err := s.observe(ctx, in)
	if err != nil {
		return err
	}
	r.Plan, r.Edit = plan.For(in), in.Edit
	done, err := s.writer.Execute(ctx, in, r.Plan)
	r.Outcomes = append(unsaid(r.Outcomes, done.Outcomes), done.Outcomes...)
	if err != nil {
		return err
	}
	intent, verdict := status.For(in, r.Plan, done.Outcomes)
	r.Verdict = verdict
	if in.Edit != nil || intent == nil {
		return nil // a supposed or deleted cache has no status to write
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(fields.Compare(intent, in.Cache, "status")) > 0 {
		r.StatusWritten, err = s.writer.Status(ctx, in.Cache, intent, done.CacheVersion)
		if err != nil && verdict.State == model.NotDone && !errors.Is(err, apply.ErrStale) {
			return nil // the verdict already reports the failure that matters
		}
		if err != nil {
			return err
		}
	}
	s.writeEvents(ctx, in, status.Events(in, done.Outcomes, verdict))
	return nil
}

// look reports how a cache stands, and writes nothing.
func (s *stages) look(ctx context.Context, in model.Input, r *model.CacheReport) error {
	in, err := s.observe(ctx, in)
	if err != nil {
		return err
	}
	r.Plan = plan.For(in)
	if createsChild(r.Plan) {
		// The lists hold only objects with our label. Another object may have the
		// name of a child. A pass would meet it when it creates the child.
		if in.Live, err = s.reader.Live(ctx, types.NamespacedName{Namespace: in.Cache.Namespace, Name: in.Cache.Name}); err != nil {
			return err
		}
		r.Plan = plan.For(in)
	}
	_, r.Verdict = status.For(in, r.Plan, nil)
	standing := status.Standing(in)
	r.Standing = &standing
	return nil
}

// createsChild reports whether a plan creates a child other than a Job.
func createsChild(p model.Plan) bool {
	return slices.ContainsFunc(p.Steps, func(s model.Step) bool {
		return s.Action == model.ActionCreate && s.Target.Kind != model.KindJob
	})
}

// observe adds to an observation what only some caches need.
func (s *stages) observe(ctx context.Context, in model.Input) (model.Input, error) {
	var err error
	if in.Config == (model.Config{}) {
		if in.Config, err = s.reader.Config(ctx, in.Cache); err != nil {
			return in, err
		}
	}
	if in.OldClaims, err = s.reader.OldClaims(ctx, in); err != nil {
		return in, err
	}
	if in.Cache.DeletionTimestamp != nil {
		in.Now = s.now() // a drain must not be shorter because the pass has taken long
	}
	if in.Deletion, err = s.reader.Deletion(ctx, in.Cache); err != nil {
		return in, err
	}
	everything := s.options.Nodes && in.Live.Owned(in.Cache).StatefulSet != nil
	if everything || plan.NeedsNodes(in) {
		if in.Nodes, err = s.reader.Nodes(ctx, in); err != nil {
			return in, err
		}
	}
	if everything && in.Cache.Spec.Storage != nil || plan.NeedsVolumes(in) {
		in.Volumes, err = s.reader.Volumes(ctx, in)
	}
	return in, err
}

// writeEvents writes Events, if that is wanted. A failure, such as a missing right,
// does not affect the pass and is logged once.
func (s *stages) writeEvents(ctx context.Context, in model.Input, events []model.Event) {
	if !s.options.Events || len(events) == 0 {
		return
	}
	if err := s.writer.Events(ctx, in.Cache, metav1.NewMicroTime(in.Now), events); err != nil {
		s.warned.Do(func() { slog.Warn("Events cannot be written; everything else is done", "error", err) })
	}
}

// unsaid returns the outcomes of earlier rounds that later ones do not replace. It
// drops failures, because those steps were tried again. It also drops an outcome
// that a later round repeats. In a dry run each round repeats every step.
func unsaid(outcomes, later []model.Outcome) []model.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o model.Outcome) bool {
		return o.Result == model.Failed || slices.ContainsFunc(later, func(l model.Outcome) bool {
			return l.Step.Action == o.Step.Action && l.Step.Target == o.Step.Target
		})
	})
}
