package observe

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// Deletion observes the progress of the deletion of a cache. It sends no request
// for a cache that is not being deleted, or whose deletion requires nothing from
// us.
func (r *Reader) Deletion(ctx context.Context, cache *v1.ClusteredCache) (model.Deletion, error) {
	var d model.Deletion
	if cache.DeletionTimestamp == nil || cache.Spec.Deletion == nil || !slices.Contains(cache.Finalizers, v1.Finalizer) {
		return d, nil
	}
	ns, err := get(ctx, r.client, types.NamespacedName{Name: cache.Namespace}, &corev1.Namespace{})
	if err != nil {
		return d, err
	}
	d.NamespaceTerminating = ns == nil || ns.DeletionTimestamp != nil
	d.Jobs = map[string]*batchv1.Job{}
	for _, hook := range cache.Spec.Deletion.Hooks {
		key := types.NamespacedName{Namespace: cache.Namespace, Name: resources.HookJobName(cache, hook.Name)}
		job, err := get(ctx, r.client, key, &batchv1.Job{})
		if err != nil {
			return d, err
		}
		if job == nil {
			continue
		}
		d.Jobs[job.Name] = job
		if job.Status.Active == 0 || !metav1.IsControlledBy(job, cache) {
			continue
		}
		pods := &corev1.PodList{}
		if err := r.client.List(ctx, pods, client.InNamespace(cache.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
			return d, fmt.Errorf("listing the pods of Job %s: %w", key, err)
		}
		d.Pods = append(d.Pods, pointers(pods.Items)...)
	}
	return d, nil
}
