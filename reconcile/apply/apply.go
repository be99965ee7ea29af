// Package apply is the only writer of a pass. It sends the steps of a plan
// one after the other, each bound to the object that the plan saw, and says
// what the API server answered.
//
// The bindings, so that an old pass never undoes what a newer one did:
//
//   - before its first write to a cache, the cache itself is confirmed: by the
//     write (finalizer, release) or by one GET of its metadata
//   - an existing child is applied with its uid and resourceVersion
//   - a missing child is applied with a resourceVersion that no object has,
//     which creates and never overwrites
//   - status is written with the last resourceVersion seen of the cache
//
// Whether writes are real is the client's business: a dry-run client makes the
// same calls.
package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/plan"
)

// ErrStale says that the cluster is no longer what the plan saw: observe and
// plan the cache again.
var ErrStale = errors.New("changed since it was observed")

// ErrBusy says that a controller kept writing an object between our reads and
// writes: leave it for the next pass.
var ErrBusy = errors.New("being written by others")

// Writer sends steps through a client.
type Writer struct {
	client client.Client
}

// NewWriter returns a Writer through c.
func NewWriter(c client.Client) *Writer { return &Writer{client: c} }

// Done is what became of a plan.
type Done struct {
	Outcomes []plan.Outcome
	// CacheVersion is the cache's resourceVersion after its last write.
	CacheVersion string
}

// Execute sends the plan's steps in order. A step that fails does not keep
// back the others, but for the finalizer: without it nothing is made. The
// error is ErrStale, ErrBusy, the end of ctx (between two steps), an
// Unauthorized answer, or a read that failed; Done holds what came before it.
func (w *Writer) Execute(ctx context.Context, in plan.Input, p plan.Plan) (Done, error) {
	done := Done{CacheVersion: in.Cache.ResourceVersion}
	if len(p.Steps) == 0 {
		return done, nil
	}
	// A step once begun is ended: what ctx ends is the way to the next.
	request := context.WithoutCancel(ctx)
	if p.Steps[0].Target.Kind != v1.Kind {
		version, err := w.confirm(request, in.Cache)
		if err != nil {
			return done, err
		}
		done.CacheVersion = version
	}
	versions := map[plan.Ref]string{}
	for _, step := range p.Steps {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		o, err := w.step(request, step, versions)
		if err != nil {
			return done, fmt.Errorf("%s %s: %w", step.Action, step.Target, err)
		}
		done.Outcomes = append(done.Outcomes, o)
		switch {
		case o.Result == plan.Failed && apierrors.IsUnauthorized(o.Err):
			return done, o.Err
		case o.Result == plan.Failed && step.Target.Kind == v1.Kind:
			return done, nil
		case step.Target.Kind == v1.Kind && o.Object != nil:
			done.CacheVersion = o.Object.GetResourceVersion()
		case o.Object != nil:
			versions[step.Target] = o.Object.GetResourceVersion()
		}
	}
	return done, nil
}

// confirm makes sure that the cache is still the one that was planned for: a
// pass may have been paused since it listed the fleet.
func (w *Writer) confirm(ctx context.Context, cache *v1.ClusteredCache) (string, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind))
	err := w.client.Get(ctx, client.ObjectKeyFromObject(cache), m)
	switch {
	case apierrors.IsNotFound(err):
		return "", ErrStale
	case err != nil:
		return "", fmt.Errorf("reading the cache again before the first write: %w", err)
	case m.UID != cache.UID || m.Generation != cache.Generation || m.DeletionTimestamp != nil && cache.DeletionTimestamp == nil:
		return "", ErrStale
	}
	return m.ResourceVersion, nil
}

// step sends one step; versions are the newest resourceVersions of objects
// that an earlier step of the same plan has written.
func (w *Writer) step(ctx context.Context, s plan.Step, versions map[plan.Ref]string) (plan.Outcome, error) {
	version := ""
	if s.Live != nil {
		version = s.Live.GetResourceVersion()
	}
	if v, ok := versions[s.Target]; ok {
		version = v
	}
	var o plan.Outcome
	err := w.persist(ctx, s, version, func(version string) (err error) {
		o, err = w.send(ctx, s, version)
		return err
	})
	switch {
	case err == nil:
		return o, nil
	case errors.Is(err, ErrStale), errors.Is(err, ErrBusy):
		return plan.Outcome{}, err
	}
	return plan.Outcome{Step: s, Result: plan.Failed, Err: err, Rejected: rejected(err)}, nil
}

func (w *Writer) send(ctx context.Context, s plan.Step, version string) (plan.Outcome, error) {
	switch s.Action {
	case plan.ActionDelete:
		return w.delete(ctx, s, version)
	case plan.ActionRelease:
		return w.patchList(ctx, s, version, "finalizers", withoutOurs(s.Live.GetFinalizers()))
	case plan.ActionDisown:
		return w.patchList(ctx, s, version, "ownerReferences", withoutController(s.Live.GetOwnerReferences()))
	}
	return w.apply(ctx, s, version)
}

// Status writes the status of a cache; version is the cache's resourceVersion
// as last seen (the status endpoint takes no notice of a uid).
func (w *Writer) Status(ctx context.Context, intent runtime.ApplyConfiguration, version string) error {
	u, err := body(intent, "", version)
	if err != nil {
		return err
	}
	err = w.client.Status().Apply(context.WithoutCancel(ctx), client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(v1.FieldManager), client.ForceOwnership)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("status: %w", ErrStale)
	}
	return err
}

// rejected tells a refusal that the server would repeat from a passing failure.
func rejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// stale tells the answers that mean: not the object you think it is.
func stale(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	// An object that was deleted and made again under the same name.
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && apierrors.IsInvalid(err) && strings.HasSuffix(cause.Field, "metadata.uid")
}

// NamespaceTerminating tells the refusal to create anything in a namespace
// that is being deleted.
func NamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
