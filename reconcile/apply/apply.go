// Package apply is the only writer of a pass. It sends the steps of a plan
// one after the other, each bound to the object that the plan saw, and says
// what the API server answered.
//
// The bindings, so that an old pass never undoes what a newer one did:
//
//   - before its first write to a cache, the cache itself is confirmed: by the
//     write (finalizer, finalize) or by one GET of its metadata
//   - an existing child is applied with its uid and resourceVersion
//   - a missing child is applied with a resourceVersion that no object has,
//     which creates and never overwrites
//   - a StatefulSet is replaced by uid and resourceVersion, and the new one
//     applied as a missing child is
//   - status is written with the last resourceVersion seen of the cache
//
// Whether writes are real is the client's business: a dry-run client makes the
// same calls.
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// ErrStale says that the cluster is no longer what the plan saw: observe and
// plan the cache again.
var ErrStale = errors.New("changed since it was observed")

// ErrBusy says that a controller kept writing an object between our reads and
// writes: leave it for the next pass.
var ErrBusy = errors.New("being written by others")

// ErrThrottled says that the API server has too much to do, and had for as long
// as a run waits for that.
var ErrThrottled = errors.New("the API server has too much to do, and asked for too long to wait")

// Writer sends steps through a client.
type Writer struct {
	client   client.Client
	estimate func(error) string
}

// NewWriter returns a Writer through c. estimate, if not nil, decides which
// refusals make a step estimated instead of failed: it gives the reason, or "".
func NewWriter(c client.Client, estimate func(error) string) *Writer {
	if estimate == nil {
		estimate = func(error) string { return "" }
	}
	return &Writer{client: c, estimate: estimate}
}

// Done is what became of a plan.
type Done struct {
	Outcomes []model.Outcome
	// CacheVersion is the cache's resourceVersion after its last write.
	CacheVersion string
}

// Execute sends the plan's steps in order. A step that fails does not keep
// back the others, but for the finalizer: without it nothing is made; and in a
// deletion, where each needs the one before. The error is ErrStale, ErrBusy, the end of ctx (between two steps), one
// that is Fatal, or a read that failed; Done holds what came before it.
func (w *Writer) Execute(ctx context.Context, in model.Input, p model.Plan) (Done, error) {
	done := Done{CacheVersion: in.Cache.ResourceVersion}
	if len(p.Steps) == 0 {
		return done, nil
	}
	// A step once begun is ended: what ctx ends is the way to the next.
	request, end := outlasting(ctx)
	defer end()
	if p.Steps[0].Target.Kind != model.KindCache && !in.OnPaper {
		version, err := w.confirm(ctx, cmp.Or(in.Stored, in.Cache))
		if err != nil {
			return done, err
		}
		done.CacheVersion = version
	}
	earlier := earlier{}
	for _, step := range p.Steps {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		o, err := w.step(request, step, earlier[step.Target])
		if err != nil {
			return done, fmt.Errorf("%s %s: %w", step.Action, step.Target, err)
		}
		done.Outcomes = append(done.Outcomes, o)
		earlier.note(o)
		switch {
		case o.Result == model.Failed && Fatal(o.Err):
			return done, o.Err
		case o.Result == model.Failed && (step.Target.Kind == model.KindCache || in.Cache.DeletionTimestamp != nil):
			return done, nil
		case step.Target.Kind == model.KindCache && o.Object != nil:
			done.CacheVersion = o.Object.GetResourceVersion()
		}
	}
	return done, nil
}

// earlier is what earlier steps of a plan made of the objects they were about.
type earlier map[model.Ref]written

type written struct {
	version string // the resourceVersion that the object has now
	undone  bool   // it was only tried, so that what needs it cannot be
}

func (e earlier) note(o model.Outcome) {
	switch {
	case o.Object != nil:
		e[o.Step.Target] = written{version: o.Object.GetResourceVersion()}
	case o.Step.Action == model.ActionOwn && o.Result == model.Configured:
		e[o.Step.Target] = written{undone: true}
	}
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

// step sends one step; before is what an earlier step did to the same object.
func (w *Writer) step(ctx context.Context, s model.Step, before written) (model.Outcome, error) {
	switch {
	case s.After != "":
		return model.Outcome{Step: s, Result: model.Estimated, Estimate: "when " + s.After}, nil
	case before.undone:
		return model.Outcome{Step: s, Result: model.Estimated, Estimate: "a dry run cannot try it before the step above is stored"}, nil
	}
	version := before.version
	if version == "" && s.Live != nil {
		version = s.Live.GetResourceVersion()
	}
	var o model.Outcome
	err := w.persist(ctx, s, version, func(version string) (err error) {
		o, err = w.send(ctx, s, version)
		return err
	})
	switch {
	case err == nil:
		return o, nil
	case errors.Is(err, ErrStale), errors.Is(err, ErrBusy):
		return model.Outcome{}, err
	case s.Target.Kind == model.KindJob && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return model.Outcome{}, ErrStale // a deletion goes on without Jobs then
	}
	if reason := w.estimate(err); reason != "" {
		return w.estimated(ctx, s, reason)
	}
	return model.Outcome{Step: s, Result: model.Failed, Err: withRule(err), Rejected: Rejected(err)}, nil
}

// estimated is the outcome of a step that could not be tried. The conflict by
// which a create finds an object that is in its way is made up for by a look.
func (w *Writer) estimated(ctx context.Context, s model.Step, reason string) (model.Outcome, error) {
	if s.Action == model.ActionCreate {
		key := client.ObjectKey{Namespace: s.Target.Namespace, Name: s.Target.Name}
		if err := w.client.Get(ctx, key, newObject(s.Target.Kind)); err == nil {
			return model.Outcome{}, ErrStale
		}
	}
	return model.Outcome{Step: s, Result: model.Estimated, Estimate: reason}, nil
}

func (w *Writer) send(ctx context.Context, s model.Step, version string) (model.Outcome, error) {
	switch s.Action {
	case model.ActionDelete:
		return w.delete(ctx, s, version)
	case model.ActionFinalize:
		return w.finalize(ctx, s, version)
	case model.ActionOwn:
		return w.own(ctx, s, version)
	case model.ActionReplace:
		return w.replace(ctx, s, version)
	}
	return w.apply(ctx, s, version)
}

// Status writes the status of the cache; version is the cache's resourceVersion
// as last seen (the status endpoint takes no notice of a uid). It tells whether
// the server took it; a refusal that is an estimate elsewhere is none here.
func (w *Writer) Status(ctx context.Context, cache *v1.ClusteredCache, intent runtime.ApplyConfiguration, version string) (bool, error) {
	raw, err := body(intent, "", version)
	if err != nil {
		return false, err
	}
	answer := &v1.ClusteredCache{}
	answer.SetNamespace(cache.Namespace)
	answer.SetName(cache.Name)
	ctx, end := outlasting(ctx)
	defer end()
	err = w.client.Status().Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, raw),
		client.FieldOwner(v1.FieldManager), client.ForceOwnership)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = ErrStale
	}
	switch {
	case err == nil:
		return true, nil
	case w.estimate(err) != "":
		return false, nil
	}
	return false, fmt.Errorf("writing the status: %w", err)
}

// maxEnding is how long a write under way goes on after the run was ended: less
// than the grace that Kubernetes gives a pod, with room for the report.
const maxEnding = 10 * time.Second

// outlasting is a context for writes that the end of ctx should not cut short.
// An API server that does not answer, or asks to wait, does not hold up the end
// for ever: a write without an answer is made good by the next pass.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	request, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-request.Done():
		case <-time.After(maxEnding):
			cancel()
		}
	})
	return request, func() { stop(); cancel() }
}

// Fatal reports whether every other cache would meet the error as well.
func Fatal(err error) bool { return apierrors.IsUnauthorized(err) || errors.Is(err, ErrThrottled) }

// Rejected reports whether the server would repeat its refusal. Other failures may
// be gone at the next try.
func Rejected(err error) bool {
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
