package reconcile

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// supposed yields the caches of the manifests as they would be stored.
func (r *runner) supposed(ctx context.Context, yield func(observe.Item) bool) error {
	for _, m := range r.options.Manifests.Caches {
		key := m.Key()
		in, err := model.Input{}, m.Err
		for try := 1; err == nil; try++ {
			in, err = r.suppose(ctx, key)
			if !errors.Is(err, apply.ErrStale) || try == maxRounds {
				break
			}
			err = nil
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

// suppose observes a cache and puts the manifest in its place.
func (r *runner) suppose(ctx context.Context, key types.NamespacedName) (model.Input, error) {
	in, err := r.reader.One(ctx, key)
	stored := in.Cache
	if errors.Is(err, observe.ErrNotFound) {
		stored = nil
		in.Live, err = r.reader.Live(ctx, key)
	}
	if err != nil {
		return model.Input{}, err
	}
	supposed, err := r.writer.Suppose(ctx, stored, r.options.Manifests.Document(key).Cache)
	if err != nil {
		return model.Input{}, err
	}
	in.Cache, in.Stored = supposed.Cache, stored
	in.OnPaper, in.NoNamespace = stored == nil, supposed.NoNamespace
	in.Edit = &model.Edit{New: stored == nil, Estimate: supposed.Estimate}
	if supposed.NoNamespace && r.options.Manifests.Namespaces[key.Namespace] {
		in.Edit.Estimate = "namespace " + key.Namespace + " is in the manifests and not created yet"
	}
	if stored != nil {
		in.Edit.Changes = fields.Edit(stored, supposed.Cache)
	}
	return in, nil
}

// config is what there is to know of the cache's ConfigMap: from the manifests
// if it is in them, else from the cluster.
func (r *runner) config(ctx context.Context, in model.Input) (model.Config, error) {
	if m := r.options.Manifests; m != nil {
		if config := m.Config(in.Cache); !config.Missing || in.NoNamespace {
			return config, nil
		}
	}
	return r.reader.Config(ctx, in.Cache)
}

// observe observes one cache anew, the way it was observed first.
func (r *runner) observe(ctx context.Context, key types.NamespacedName) (model.Input, error) {
	if r.options.Manifests != nil {
		return r.suppose(ctx, key)
	}
	return r.reader.One(ctx, key)
}
