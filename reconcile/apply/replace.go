package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile/model"
)

// The garbage collector first removes the owner reference from the pods, and then
// deletes the StatefulSet. A pass waits maxOrphaning for that, and then leaves the
// rest to the next pass.
const (
	maxOrphaning  = 10 * time.Second
	orphaningPoll = 100 * time.Millisecond
)

// replace deletes an object without its dependents, waits until it is gone, and
// applies the intent in its place. A pass that ends in between leaves a missing
// object. The next pass creates it.
func (w *Writer) replace(ctx context.Context, s model.Step, version string) (model.Outcome, error) {
	uid := s.Live.GetUID()
	err := w.client.Delete(ctx, s.Live.DeepCopyObject().(client.Object),
		client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if err != nil && !apierrors.IsNotFound(err) {
		return model.Outcome{}, err
	}
	for end := time.Now().Add(maxOrphaning); ; time.Sleep(orphaningPoll) {
		left := newObject(s.Target.Kind)
		err := w.client.Get(ctx, client.ObjectKey{Namespace: s.Target.Namespace, Name: s.Target.Name}, left)
		switch {
		case apierrors.IsNotFound(err):
			return w.putInPlace(ctx, s)
		case err != nil:
			return model.Outcome{}, fmt.Errorf("waiting until the old one is gone: %w", err)
		case left.GetUID() != uid:
			return model.Outcome{}, ErrStale
		case left.GetDeletionTimestamp() == nil:
			// This is a dry run, so nothing was stored.
			return model.Outcome{Step: s, Result: model.Estimated, Estimate: "a dry run cannot try it before the old one is gone"}, nil
		case time.Now().After(end):
			return model.Outcome{}, ErrBusy
		}
	}
}

// putInPlace creates the new object, and reports it as a replacement.
func (w *Writer) putInPlace(ctx context.Context, s model.Step) (model.Outcome, error) {
	create := s
	create.Action, create.Live = model.ActionCreate, nil
	o, err := w.apply(ctx, create, createOnly)
	if stale(err) {
		return o, ErrStale
	}
	if err != nil {
		return o, err
	}
	o.Step, o.Result = s, model.Replaced
	return o, nil
}
