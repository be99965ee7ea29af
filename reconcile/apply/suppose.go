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
// one. The spec is the manifest's, as a whole, but for a size that it leaves out;
// labels and annotations of others stay. The error is ErrRefused, ErrStale, or
// one that speaks of the API server.
func (w *Writer) Suppose(ctx context.Context, stored, manifest *v1.ClusteredCache) (Supposed, error) {
	local := manifest.DeepCopy()
	if stored != nil {
		local = stored.DeepCopy()
		applied := lastApplied(stored)
		local.Labels = applied.merge("labels", stored.Labels, manifest.Labels)
		local.Annotations = applied.merge("annotations", stored.Annotations, manifest.Annotations)
		local.Spec = *manifest.Spec.DeepCopy()
		if manifest.Spec.Size == 0 && applied.Spec.Size == nil {
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
	if Rejected(err) {
		return Supposed{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return Supposed{}, err
}

// applied is what kubectl set with its last apply of a manifest: the next one
// takes it away if the manifest leaves it out.
type applied struct {
	// Metadata has labels and annotations.
	Metadata map[string]any `json:"metadata"`
	Spec     struct {
		Size *int32 `json:"size"`
	} `json:"spec"`
	// serverSide are the fields that kubectl alone owns.
	serverSide fields.Set
}

func lastApplied(stored *v1.ClusteredCache) applied {
	a := applied{serverSide: fields.AppliedAlone(stored, "kubectl")}
	// What is no JSON was not written by kubectl, and says nothing.
	_ = json.Unmarshal([]byte(stored.Annotations[corev1.LastAppliedConfigAnnotation]), &a)
	return a
}

// merge is what the labels or annotations of a cache will be: those of the
// manifest, and those that another tool or person put there.
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
