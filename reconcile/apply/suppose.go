package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
)

// ErrRefused reports that the API server would not store a manifest.
var ErrRefused = errors.New("the API server refuses the manifest")

// Supposed is the cache that a manifest would lead to.
type Supposed struct {
	Cache *v1.ClusteredCache
	// Estimate is why the API server was not asked. It is empty if the server was
	// asked.
	Estimate string
	// NoNamespace reports that the namespace of the cache does not exist.
	NoNamespace bool
}

// Suppose asks the API server what it would store for a manifest. The request is
// always a dry run, whatever the client. The argument stored is the cache as it is,
// or nil for a new one.
//
// The spec comes from the manifest as a whole, except for a size that the manifest
// omits. Labels and annotations of others stay. The error is ErrRefused, ErrStale,
// or one about the API server.
func (w *Writer) Suppose(ctx context.Context, stored, manifest *v1.ClusteredCache) (Supposed, error) {
	local := manifest.DeepCopy()
	if stored != nil {
		local = stored.DeepCopy()
		applied := lastApplied(stored)
		local.Labels = applied.merge("labels", stored.Labels, manifest.Labels)
		local.Annotations = applied.merge("annotations", stored.Annotations, manifest.Annotations)
		local.Spec = *manifest.Spec.DeepCopy()
		if manifest.Spec.Size == 0 && applied.Spec.Size == nil {
			// The size belongs to an autoscaler. No tool that applies the manifest
			// would remove it.
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
	if Rejected(err) {
		return Supposed{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return Supposed{}, err
}

// applied is what kubectl set when it last applied a manifest. The next apply
// removes from the cache what the manifest then omits.
type applied struct {
	// Metadata holds labels and annotations.
	Metadata map[string]any `json:"metadata"`
	Spec     struct {
		Size *int32 `json:"size"`
	} `json:"spec"`
	// serverSide are the fields that kubectl owns by server-side apply and nobody
	// else owns.
	serverSide fields.Set
}

// lastApplied reads what kubectl set, both by client-side and by server-side apply.
func lastApplied(stored *v1.ClusteredCache) applied {
	a := applied{serverSide: fields.AppliedAlone(stored, "kubectl")}
	// An annotation that is not JSON was not written by kubectl, so it is ignored.
	_ = json.Unmarshal([]byte(stored.Annotations[corev1.LastAppliedConfigAnnotation]), &a)
	return a
}

// merge returns the labels or annotations that the cache will have: those of the
// manifest, and those that another tool or person set.
func (a applied) merge(field string, stored, manifest map[string]string) map[string]string {
	merged := maps.Clone(stored)
	clientSide, _ := a.Metadata[field].(map[string]any)
	maps.DeleteFunc(merged, func(name, _ string) bool {
		_, was := clientSide[name]
		return was || a.serverSide.Has("metadata", field, name)
	})
	if merged == nil {
		return manifest
	}
	maps.Copy(merged, manifest)
	return merged
}
