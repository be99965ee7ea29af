package observe

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// Nodes reads the pods of a cache. If pods are missing, it also reads why they
// could not be created.
func (r *Reader) Nodes(ctx context.Context, in model.Input) (*health.Nodes, error) {
	sts := in.Live.Owned(in.Cache).StatefulSet
	list := &corev1.PodList{}
	err := r.client.List(ctx, list, client.InNamespace(sts.Namespace), client.MatchingLabels(resources.SelectorLabels(in.Cache.Name)))
	if err != nil {
		return nil, fmt.Errorf("listing the pods of StatefulSet %s/%s: %w", sts.Namespace, sts.Name, err)
	}
	n := &health.Nodes{}
	for _, pod := range pointers(list.Items) {
		if metav1.IsControlledBy(pod, sts) {
			n.Pods = append(n.Pods, pod)
		}
	}
	slices.SortFunc(n.Pods, func(a, b *corev1.Pod) int {
		return cmp.Compare(resources.Ordinal(a.Name), resources.Ordinal(b.Name))
	})
	if health.Observed(sts) && len(n.Pods) < int(*sts.Spec.Replicas) {
		n.Refusals, err = r.refusals(ctx, sts, n.Pods)
	}
	return n, err
}

// notCreated matches the StatefulSet controller's message about a pod that it could
// not create.
var notCreated = regexp.MustCompile(`^(?i:create) Pod (\S+) in StatefulSet \S+ failed error: (.*)$`)

// refusals returns the newest such message for each missing node. It returns none
// if the identity may not read Events.
func (r *Reader) refusals(ctx context.Context, sts *appsv1.StatefulSet, pods []*corev1.Pod) (map[string]health.Refusal, error) {
	list := &eventsv1.EventList{}
	err := r.client.List(ctx, list, client.InNamespace(sts.Namespace),
		client.MatchingFields{"regarding.uid": string(sts.UID), "reason": "FailedCreate"})
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the Events of StatefulSet %s/%s: %w", sts.Namespace, sts.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int {
		return cmp.Or(lastSeen(a).Compare(lastSeen(b)), cmp.Compare(a.Name, b.Name))
	})
	refusals := map[string]health.Refusal{}
	for _, e := range list.Items {
		found := notCreated.FindStringSubmatch(e.Note)
		if len(found) == 0 {
			continue
		}
		name, sentence := found[1], found[2]
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == name }) {
			refusals[name] = health.Refusal{Sentence: sentence, Since: e.CreationTimestamp.Time}
		}
	}
	return refusals, nil
}

// lastSeen returns when an Event happened last. Old and new Events keep that time
// in different fields.
func lastSeen(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return cmp.Or(e.DeprecatedLastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
}

// Volumes reads the claims of a cache. It also reads from their StorageClasses
// whether volumes can grow.
func (r *Reader) Volumes(ctx context.Context, in model.Input) (*model.Volumes, error) {
	sts := in.Live.Owned(in.Cache).StatefulSet
	list := &corev1.PersistentVolumeClaimList{}
	err := r.client.List(ctx, list, client.InNamespace(sts.Namespace), client.MatchingLabels(resources.SelectorLabels(in.Cache.Name)))
	if err != nil {
		return nil, fmt.Errorf("listing the claims of StatefulSet %s/%s: %w", sts.Namespace, sts.Name, err)
	}
	v := &model.Volumes{Classes: map[string]model.Expansion{}}
	for _, claim := range pointers(list.Items) {
		ordinal := resources.Ordinal(claim.Name)
		if ordinal < 0 || claim.Name != resources.ClaimName(sts.Name, ordinal) {
			continue
		}
		v.Claims = append(v.Claims, claim)
		if class := claim.Spec.StorageClassName; class != nil && *class != "" {
			if _, known := v.Classes[*class]; !known {
				if v.Classes[*class], err = r.expansion(ctx, *class); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortFunc(v.Claims, func(a, b *corev1.PersistentVolumeClaim) int {
		return cmp.Compare(resources.Ordinal(a.Name), resources.Ordinal(b.Name))
	})
	return v, nil
}

// expansion reads whether volumes of a StorageClass can grow. It returns the zero
// Expansion if the identity may not read the class.
func (r *Reader) expansion(ctx context.Context, class string) (model.Expansion, error) {
	found, err := get(ctx, r.client, types.NamespacedName{Name: class}, &storagev1.StorageClass{})
	switch {
	case apierrors.IsForbidden(err):
		return "", nil // a Role cannot grant access to a StorageClass
	case err != nil:
		return "", err
	case found == nil:
		return model.ClassMissing, nil
	case found.AllowVolumeExpansion != nil && *found.AllowVolumeExpansion:
		return model.ClassGrows, nil
	}
	return model.ClassFixed, nil
}
