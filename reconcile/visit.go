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

// stages are what a visit goes through. The pure ones are functions.
type stages struct {
	options Options
	now     func() time.Time
	reader  *observe.Reader
	writer  *apply.Writer // nil for a look
	// warned: it was said that Events cannot be written.
	warned sync.Once
}

// reconcile brings a cache a step closer to its spec: it observes, plans, applies
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
		return nil // what is only supposed, or is gone, has no status to write
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(fields.Compare(intent, in.Cache, "status")) > 0 {
		r.StatusWritten, err = s.writer.Status(ctx, in.Cache, intent, done.CacheVersion)
		if err != nil && verdict.State == model.NotDone && !errors.Is(err, apply.ErrStale) {
			return nil // the failure that the status would have told is the one to tell
		}
		if err != nil {
			return err
		}
	}
	s.tell(ctx, in, status.Events(in, done.Outcomes, verdict))
	return nil
}

// look says how a cache stands, and writes nothing.
func (s *stages) look(ctx context.Context, in model.Input, r *model.CacheReport) error {
	in, err := s.observe(ctx, in)
	if err != nil {
		return err
	}
	r.Plan = plan.For(in)
	if createsChild(r.Plan) {
		// The lists show what has our label; what others have made under the
		// name of a child, a pass would meet when it creates it.
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

func createsChild(p model.Plan) bool {
	return slices.ContainsFunc(p.Steps, func(s model.Step) bool {
		return s.Action == model.ActionCreate && s.Target.Kind != model.KindJob
	})
}

// observe completes an observation with what only some caches need.
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
		in.Now = s.now() // clients get their time to leave, however long the pass has taken so far
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

// tell writes Events. They are a service: without the right to write them the
// pass is as good, and says so once.
func (s *stages) tell(ctx context.Context, in model.Input, events []model.Event) {
	if !s.options.Events || len(events) == 0 {
		return
	}
	if err := s.writer.Events(ctx, in.Cache, metav1.NewMicroTime(in.Now), events); err != nil {
		s.warned.Do(func() { slog.Warn("Events cannot be written; all else is done", "error", err) })
	}
}

// unsaid keeps of the outcomes of earlier rounds what is still to be said. A
// failure was tried again. What a later round says anew is dropped too: in a dry
// run each round does everything again.
func unsaid(outcomes, later []model.Outcome) []model.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o model.Outcome) bool {
		return o.Result == model.Failed || slices.ContainsFunc(later, func(l model.Outcome) bool {
			return l.Step.Action == o.Step.Action && l.Step.Target == o.Step.Target
		})
	})
}
