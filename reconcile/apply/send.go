package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// createOnly is a resourceVersion that no stored object has. An apply with it
// creates a missing object. If the object exists, the apply is a conflict in spite
// of force.
const createOnly = "1"

// maxTries and maxBusy bound the tries of one write. A controller that writes
// status in a loop could otherwise keep us from our write for ever.
const (
	maxTries = 10
	maxBusy  = 5 * time.Second
)

// persist calls send, and calls it again with the new resourceVersion as long as
// only fields of others have changed.
func (w *Writer) persist(ctx context.Context, s model.Step, version string, send func(version string) error) error {
	start := time.Now()
	for try := 1; ; try++ {
		err := send(version)
		if err == nil || !stale(err) {
			return err
		}
		if s.Live == nil || s.Target.Kind == model.KindCache || s.Target.Kind == model.KindPod {
			// The status of a pod is why the step was planned, so any change to it
			// counts.
			return ErrStale
		}
		if version, err = w.newVersion(ctx, s); err != nil {
			return err
		}
		if try == maxTries || time.Since(start) > maxBusy {
			return ErrBusy
		}
		time.Sleep(time.Duration(try) * time.Duration(20+rand.IntN(40)) * time.Millisecond)
	}
}

// newVersion reads the object again and returns its resourceVersion. It returns
// ErrStale if the object is gone or being deleted, or if its uid, its spec or our
// entry in managedFields has changed.
func (w *Writer) newVersion(ctx context.Context, s model.Step) (string, error) {
	fresh := newObject(s.Target.Kind)
	err := w.client.Get(ctx, types.NamespacedName{Namespace: s.Target.Namespace, Name: s.Target.Name}, fresh)
	switch {
	case apierrors.IsNotFound(err):
		return "", ErrStale
	case err != nil:
		return "", fmt.Errorf("reading %s again after a conflict: %w", s.Target, err)
	case fresh.GetUID() != s.Live.GetUID(), fresh.GetDeletionTimestamp() != nil,
		fresh.GetGeneration() != s.Live.GetGeneration(), !fields.SameEntry(fresh, s.Live):
		return "", ErrStale
	}
	return fresh.GetResourceVersion(), nil
}

// apply sends the intent of a step as a server-side apply with force. It compares
// the answer with the live object and with the intent.
func (w *Writer) apply(ctx context.Context, s model.Step, version string) (model.Outcome, error) {
	uid := types.UID("")
	if s.Live != nil {
		uid = s.Live.GetUID()
	} else {
		version = createOnly
	}
	raw, err := body(s.Intent, uid, version)
	if err != nil {
		return model.Outcome{}, err
	}
	answer := newObject(s.Target.Kind)
	answer.SetNamespace(s.Target.Namespace)
	answer.SetName(s.Target.Name)
	err = w.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(v1.FieldManager), client.ForceOwnership)
	if err != nil {
		return model.Outcome{}, err
	}
	o := model.Outcome{Step: s, Result: model.Configured, Object: answer}
	switch {
	case s.Action == model.ActionCreate:
		o.Result = model.Created
	case unchanged(s.Live, answer):
		o.Result = model.Unchanged
	}
	o.Warning = fields.Resisted(s.Intent, answer)
	return o, nil
}

// body returns the intent as JSON, with uid and resourceVersion as preconditions.
// It decodes only the metadata, so that every other value stays as it is.
func body(intent runtime.ApplyConfiguration, uid types.UID, version string) ([]byte, error) {
	object, metadata := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	raw, err := json.Marshal(intent)
	if err == nil {
		err = json.Unmarshal(raw, &object)
	}
	if err == nil {
		err = json.Unmarshal(object["metadata"], &metadata)
	}
	if err == nil && uid != "" {
		metadata["uid"], err = json.Marshal(uid)
	}
	if err == nil {
		metadata["resourceVersion"], err = json.Marshal(version)
	}
	if err == nil {
		object["metadata"], err = json.Marshal(metadata)
	}
	if err == nil {
		raw, err = json.Marshal(object)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the intent: %w", err)
	}
	return raw, nil
}

// unchanged reports whether an apply changed nothing. It compares content and not
// resourceVersions, because a dry run never changes a resourceVersion.
func unchanged(before, after fields.Object) bool {
	return fields.SameOwners(before, after) && equality.Semantic.DeepEqual(bare(before), bare(after))
}

// bare returns a copy of o without the parts that differ between answers to
// different requests.
func bare(o fields.Object) fields.Object {
	c := o.DeepCopyObject().(fields.Object)
	c.SetResourceVersion("")
	c.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // absent in the items of a list
	c.SetManagedFields(nil)
	if sts, ok := c.(*appsv1.StatefulSet); ok {
		for i := range sts.Spec.VolumeClaimTemplates {
			sts.Spec.VolumeClaimTemplates[i].TypeMeta = metav1.TypeMeta{} // absent in protobuf
		}
	}
	return c
}

// delete deletes the object that the plan saw. An object that is already gone
// counts as deleted.
func (w *Writer) delete(ctx context.Context, s model.Step, version string) (model.Outcome, error) {
	uid := s.Live.GetUID()
	err := w.client.Delete(ctx, s.Live.DeepCopyObject().(client.Object),
		client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return model.Outcome{}, err
	}
	return model.Outcome{Step: s, Result: model.Deleted}, nil
}

// finalize removes our finalizer and nothing else. It does not use apply, because
// an apply cannot remove an item that somebody else owns too. A cache that is
// already gone counts as finalized.
func (w *Writer) finalize(ctx context.Context, s model.Step, version string) (model.Outcome, error) {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.Live.GetUID(), "resourceVersion": version, "finalizers": withoutOurs(s.Live.GetFinalizers()),
	}})
	if err != nil {
		return model.Outcome{}, err
	}
	answer := s.Live.DeepCopyObject().(client.Object)
	err = w.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(v1.FieldManager))
	o := model.Outcome{Step: s, Result: model.Finalized}
	switch {
	case apierrors.IsNotFound(err):
		return o, nil
	case err != nil:
		return model.Outcome{}, err
	case len(answer.GetFinalizers()) > 0:
		o.Object = answer // other finalizers keep the cache
	}
	return o, nil
}

// withoutOurs returns the finalizers without ours, in the same order.
func withoutOurs(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == v1.Finalizer })
}

// own writes managedFields and nothing else. It also writes uid and resourceVersion
// unchanged, so that the server compares them. The outcome of a dry run has no
// object, because nothing was stored.
func (w *Writer) own(ctx context.Context, s model.Step, version string) (model.Outcome, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	raw, err := json.Marshal([]operation{
		{"replace", "/metadata/uid", s.Live.GetUID()},
		{"replace", "/metadata/resourceVersion", version},
		{"add", "/metadata/managedFields", s.Managers},
	})
	if err != nil {
		return model.Outcome{}, err
	}
	answer := s.Live.DeepCopyObject().(client.Object)
	err = w.client.Patch(ctx, answer, client.RawPatch(types.JSONPatchType, raw), client.FieldOwner(v1.FieldManager))
	if err != nil {
		return model.Outcome{}, err
	}
	o := model.Outcome{Step: s, Result: model.Configured}
	if answer.GetResourceVersion() != version {
		o.Object = answer
	}
	return o, nil
}

// newObject returns an empty object of a kind that steps can target.
func newObject(kind model.Kind) client.Object {
	switch kind {
	case model.KindStatefulSet:
		return &appsv1.StatefulSet{}
	case model.KindService:
		return &corev1.Service{}
	case model.KindClaim:
		return &corev1.PersistentVolumeClaim{}
	case model.KindDisruptionBudget:
		return &policyv1.PodDisruptionBudget{}
	case model.KindJob:
		return &batchv1.Job{}
	case model.KindCache:
		return &v1.ClusteredCache{}
	}
	panic("no step is about a " + string(kind))
}
