package apply

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// Events writes one Event of the cache for each of events. The argument at is their
// time.
func (w *Writer) Events(ctx context.Context, cache *v1.ClusteredCache, at metav1.MicroTime, events []model.Event) error {
	ctx, end := outlasting(ctx)
	defer end()
	var errs []error
	for _, e := range events {
		err := w.client.Create(ctx, &eventsv1.Event{
			ObjectMeta:          metav1.ObjectMeta{Namespace: cache.Namespace, GenerateName: cache.Name + "-"},
			EventTime:           at,
			ReportingController: v1.GroupVersion.Group + "/" + v1.FieldManager,
			ReportingInstance:   v1.FieldManager,
			Action:              e.Action,
			Reason:              e.Reason,
			Type:                e.Type,
			Note:                e.Note,
			Regarding: corev1.ObjectReference{
				APIVersion: v1.GroupVersion.String(), Kind: v1.Kind,
				Namespace: cache.Namespace, Name: cache.Name, UID: cache.UID,
			},
		})
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("writing Events: %w", err)
	}
	return nil
}
