package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// source yields the caches of a pass until yield returns false.
type source func(ctx context.Context, yield func(observe.Item) bool) error

// mode decides what a run does. It is chosen once.
type mode interface {
	// caches yields the caches of the first pass.
	caches(ctx context.Context, yield func(observe.Item) bool) error
	// again observes one of these caches again.
	again(ctx context.Context, key types.NamespacedName) (model.Input, error)
	// visit does the work of the run for one cache.
	visit(ctx context.Context, in model.Input, r *model.CacheReport) error
	// unseen returns the verdict on a cache that could not be observed.
	unseen(err error) model.Verdict
}

// fleet is the mode that reconciles the caches in scope.
type fleet struct{ *stages }

func (f fleet) caches(ctx context.Context, yield func(observe.Item) bool) error {
	return f.reader.Fleet(ctx, f.options.Scope, yield)
}

func (f fleet) again(ctx context.Context, key types.NamespacedName) (model.Input, error) {
	in, err := f.reader.One(ctx, key)
	if errors.Is(err, observe.ErrNotFound) {
		err = errGone
	}
	return in, err
}

func (f fleet) visit(ctx context.Context, in model.Input, r *model.CacheReport) error {
	return f.reconcile(ctx, in, r)
}

func (f fleet) unseen(err error) model.Verdict { return unobserved(err) }

// supposed is the mode that plans the caches of manifests as if they were applied.
type supposed struct {
	fleet
	files *manifest.Set
}

func (s supposed) caches(ctx context.Context, yield func(observe.Item) bool) error {
	for _, d := range s.files.Caches {
		in, err := model.Input{}, d.Err
		for try := 1; err == nil; try++ {
			in, err = s.again(ctx, d.Key())
			if !errors.Is(err, apply.ErrStale) || try == maxRounds {
				break
			}
			err = nil
		}
		if !yield(observe.Item{Key: d.Key(), Input: in, Err: err}) {
			return nil
		}
	}
	return nil
}

// again observes a cache and replaces it by the result of its manifest.
func (s supposed) again(ctx context.Context, key types.NamespacedName) (model.Input, error) {
	in, err := s.reader.One(ctx, key)
	stored := in.Cache
	if errors.Is(err, observe.ErrNotFound) {
		stored = nil
		in.Live, err = s.reader.Live(ctx, key)
	}
	if err != nil {
		return model.Input{}, err
	}
	would, err := s.writer.Suppose(ctx, stored, s.files.Document(key).Cache)
	if err != nil {
		return model.Input{}, err
	}
	in.Cache, in.Stored = would.Cache, stored
	in.OnPaper, in.NoNamespace = stored == nil, would.NoNamespace
	in.Edit = &model.Edit{New: stored == nil, Estimate: would.Estimate}
	if would.NoNamespace && s.files.Namespaces[key.Namespace] {
		in.Edit.Estimate = "namespace " + key.Namespace + " is in the manifests and not created yet"
	}
	if stored != nil {
		in.Edit.Changes = fields.Edit(stored, would.Cache)
	}
	// A ConfigMap of the manifests counts as applied.
	if config := s.files.Config(in.Cache); !config.Missing || in.NoNamespace {
		in.Config = config
	}
	return in, nil
}

// expected is the mode that only looks at caches: those in scope, or those of
// manifests. In the second case the stored spec must be that of the manifest.
type expected struct {
	fleet
	files *manifest.Set // nil if caches in scope are looked at
}

func (e expected) caches(ctx context.Context, yield func(observe.Item) bool) error {
	if e.files == nil {
		return e.fleet.caches(ctx, yield)
	}
	for _, d := range e.files.Caches {
		in, err := model.Input{}, d.Err
		if err == nil {
			in, err = e.again(ctx, d.Key())
		}
		if !yield(observe.Item{Key: d.Key(), Input: in, Err: err}) {
			return nil
		}
	}
	return nil
}

func (e expected) visit(ctx context.Context, in model.Input, r *model.CacheReport) error {
	if err := e.look(ctx, in, r); err != nil {
		return err
	}
	if difference := e.notApplied(in.Cache); difference != "" {
		r.Verdict = model.Verdict{State: model.Progressing, Reason: v1.ReasonSpecNotApplied, Message: difference}
	}
	return nil
}

// unseen returns the verdict on a cache that could not be observed. A missing cache
// is still expected, even if it existed before.
func (e expected) unseen(err error) model.Verdict {
	if e.files != nil && errors.Is(err, errGone) {
		return model.Verdict{State: model.Progressing, Reason: v1.ReasonSpecNotApplied, Message: "there is no such ClusteredCache yet"}
	}
	return unobserved(err)
}

// notApplied describes how a live spec differs from that of the manifest. It
// returns "" if they are equal. If the manifest omits the size, any size is
// accepted.
func (e expected) notApplied(live *v1.ClusteredCache) string {
	if e.files == nil {
		return ""
	}
	d := e.files.Document(types.NamespacedName{Namespace: live.Namespace, Name: live.Name})
	if live.DeletionTimestamp != nil {
		return "the stored ClusteredCache is being deleted, and " + d.Source + " asks for it"
	}
	want := d.Cache.DeepCopy()
	if want.Spec.Size == 0 {
		want.Spec.Size = live.Spec.Size
	}
	want.Default()
	stored, would := live.DeepCopy(), live.DeepCopy()
	stored.Default()
	would.Spec = want.Spec
	return differences(fields.Edit(stored, would), d.Source)
}

// differences lists the changes in one sentence. It returns "" if there are none.
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

// orAbsent returns value, or a word for an absent one.
func orAbsent(value string) string {
	if value == "" {
		return "absent"
	}
	return value
}
