package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/plan"
	"example.com/clusteredcache/reconcile/status"
)

// Look says how the caches in scope stand, each of them, as Run would after a
// pass that writes nothing. It takes Wait and Timeout of the options, not
// LingerUntil, Manifests, Estimate or Events.
func Look(ctx context.Context, c client.Reader, o Options) (model.Fleet, error) {
	p := newPatience()
	r := &runner{options: o, reader: observe.NewReader(patientReader{c, p}), ledger: newLedger(o.Progress), patience: p}
	r.visit, r.ledger.all = r.look, true
	caches := r.fleet
	if o.Expect != nil {
		caches = r.expected
	}
	return r.run(ctx, caches)
}

// look is a round without writes.
func (r *runner) look(ctx context.Context, in model.Input, report *model.CacheReport) error {
	in, err := r.complete(ctx, in)
	if err != nil {
		return err
	}
	report.Plan = plan.For(in)
	if createsSomething(report.Plan) {
		// The lists show what has our label; what others have made under the
		// name of a child, a pass would meet when it creates it.
		if in.Live, err = r.reader.Live(ctx, types.NamespacedName{Namespace: in.Cache.Namespace, Name: in.Cache.Name}); err != nil {
			return err
		}
		report.Plan = plan.For(in)
	}
	_, report.Verdict = status.For(in, report.Plan, nil)
	standing := status.Standing(in)
	report.Standing = &standing
	if difference := r.notApplied(in.Cache); difference != "" {
		report.Verdict = model.Verdict{State: model.Progressing, Reason: v1.ReasonSpecNotApplied, Message: difference}
	}
	return nil
}

func createsSomething(p model.Plan) bool {
	return slices.ContainsFunc(p.Steps, func(s model.Step) bool { return s.Action == model.ActionCreate && s.Target.Kind != model.KindJob })
}

// expected yields the caches of the manifests as they are stored.
func (r *runner) expected(ctx context.Context, yield func(observe.Item) bool) error {
	for _, m := range r.options.Expect.Caches {
		key := m.Key()
		in, err := model.Input{}, m.Err
		if err == nil {
			in, err = r.reader.One(ctx, key)
		}
		if err != nil && m.Err == nil && !ofThisCache(err) {
			return err
		}
		if !yield(observe.Item{Key: key, Input: in, Err: err}) {
			return nil
		}
	}
	return nil
}

// notApplied says in what a live spec differs from the manifest's; "": in
// nothing, or none is expected. A size that the manifest leaves out may be any.
func (r *runner) notApplied(live *v1.ClusteredCache) string {
	if r.options.Expect == nil {
		return ""
	}
	m := r.options.Expect.Document(types.NamespacedName{Namespace: live.Namespace, Name: live.Name})
	if m == nil {
		return ""
	}
	if live.DeletionTimestamp != nil {
		return "the stored ClusteredCache is being deleted, and " + m.Source + " asks for it"
	}
	want := m.Cache.DeepCopy()
	if want.Spec.Size == 0 {
		want.Spec.Size = live.Spec.Size
	}
	want.Default()
	stored, supposed := live.DeepCopy(), live.DeepCopy()
	stored.Default()
	supposed.Spec = want.Spec
	return differences(fields.Edit(stored, supposed), m.Source)
}

func differences(changes []fields.Change, source string) string {
	if len(changes) == 0 {
		return ""
	}
	parts := make([]string, 0, len(changes))
	for _, c := range changes {
		parts = append(parts, fmt.Sprintf("%s is %s and not %s", c.Path, orAbsent(c.From), orAbsent(c.To)))
	}
	return fmt.Sprintf("the stored spec is not that of %s: %s", source, strings.Join(parts, ", "))
}

func orAbsent(value string) string {
	if value == "" {
		return "absent"
	}
	return value
}

// unseen is the verdict on a cache that could not be observed. One that a
// manifest expects is still to come, also if it has been there before.
func (r *runner) unseen(err error) model.Verdict {
	if r.options.Expect != nil && (errors.Is(err, observe.ErrNotFound) || errors.Is(err, errGone)) {
		return model.Verdict{State: model.Progressing, Reason: v1.ReasonSpecNotApplied, Message: "there is no such ClusteredCache yet"}
	}
	return unobserved(err)
}
