package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// OldClaims names, in order, the claims that an earlier cache of the same name left
// and that new nodes would use. It sends a request only if a StatefulSet with
// storage is missing.
func (r *Reader) OldClaims(ctx context.Context, in model.Input) ([]string, error) {
	cache := in.Cache
	if cache.Spec.Storage == nil || cache.DeletionTimestamp != nil || in.Live.StatefulSet != nil || in.NoNamespace {
		return nil, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	err := r.client.List(ctx, list, client.InNamespace(cache.Namespace), client.MatchingLabels(resources.SelectorLabels(cache.Name)))
	if err != nil {
		return nil, fmt.Errorf("listing the claims of %s/%s: %w", cache.Namespace, cache.Name, err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = list.Items[i].DeletionTimestamp == nil
	}
	var names []string
	for ordinal := range min(cache.Spec.Size, v1.MaxSize) {
		if name := resources.ClaimName(cache.Name, int(ordinal)); there[name] {
			names = append(names, name)
		}
	}
	return names, nil
}
