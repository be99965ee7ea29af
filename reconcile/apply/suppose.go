package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
)

// ErrRefused says that the API server would not store a manifest.
var ErrRefused = errors.New("the API server refuses the manifest")

// Supposed is what a manifest would make of a cache.
type Supposed struct {
	Cache *v1.ClusteredCache
	// Estimate is why the API server was not asked; "": it was.
	Estimate string
	// NoNamespace: the cache's namespace does not exist.
	NoNamespace bool
}

// Suppose asks the API server what it would store for a manifest: always as a
// dry run, whatever the client. stored is the cache as it is, nil for a new
// one. Spec, labels and annotations are the manifest's, as a whole, but for a
// size that it leaves out. The error
// is ErrRefused, ErrStale, or one that speaks of the API server.
func (w *Writer) Suppose(ctx context.Context, stored, manifest *v1.ClusteredCache) (Supposed, error) {
	local := manifest.DeepCopy()
	if stored != nil {
		local = stored.DeepCopy()
		local.Labels, local.Annotations, local.Spec = manifest.Labels, manifest.Annotations, *manifest.Spec.DeepCopy()
		if manifest.Spec.Size == 0 && !appliedSize(stored) {
			// Left out, it belongs to an autoscaler, and no tool that applies the
			// manifest takes it away.
			local.Spec.Size = stored.Spec.Size
		}
	}
	asked := local.DeepCopy()
	var err error
	if stored != nil {
		err = w.client.Update(ctx, asked, client.DryRunAll, client.FieldOwner("manifest"))
	} else {
		err = w.client.Create(ctx, asked, client.DryRunAll, client.FieldOwner("manifest"))
	}
	local.Default()
	switch {
	case err == nil:
		return Supposed{Cache: asked}, nil
	case stale(err):
		return Supposed{}, ErrStale
	case apierrors.IsNotFound(err) && stored == nil:
		return Supposed{Cache: local, NoNamespace: true, Estimate: "namespace " + local.Namespace + " does not exist"}, nil
	}
	if reason := w.estimate(err); reason != "" {
		return Supposed{Cache: local, Estimate: reason}, nil
	}
	if rejected(err) {
		return Supposed{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return Supposed{}, err
}

// appliedSize: kubectl's last client-side apply set the size, so the next one
// takes it away if the manifest leaves it out.
func appliedSize(stored *v1.ClusteredCache) bool {
	var last struct {
		Spec struct {
			Size *int32 `json:"size"`
		} `json:"spec"`
	}
	err := json.Unmarshal([]byte(stored.Annotations[corev1.LastAppliedConfigAnnotation]), &last)
	return err == nil && last.Spec.Size != nil
}
