// Package apply is the only writer of a pass. It sends the steps of a plan in order
// and records what the API server answered.
//
// Every write is bound to what the plan saw, so that an old pass cannot undo the
// work of a newer one:
//
//   - Before the first write to a cache, the cache itself is confirmed. The
//     finalizer steps confirm it themselves; otherwise one GET of its metadata
//     does.
//   - An existing child is applied with its uid and resourceVersion.
//   - A missing child is applied with a resourceVersion that no object has. Such an
//     apply can create an object but never overwrites one.
//   - A StatefulSet is replaced by uid and resourceVersion. The new one is applied
//     like a missing child.
//   - The status is written with the last resourceVersion seen of the cache.
//
// The client decides whether writes are real. A dry-run client makes the same
// calls.
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

// ErrStale reports that the cluster has changed since the plan was made. The caller
// must observe and plan the cache again.
var ErrStale = errors.New("changed since it was observed")

// ErrBusy reports that a controller kept writing an object between our reads and
// writes. The caller must leave the cache to the next pass.
var ErrBusy = errors.New("being written by others")

// ErrThrottled reports that the API server answered 429 to every request for as
// long as a run waits.
var ErrThrottled = errors.New("the API server answered 429 (too many requests) for longer than a run waits")

// Writer sends steps through a client.
type Writer struct {
	client   client.Client
	estimate func(error) string
}

// NewWriter returns a Writer that uses c. The function estimate, if not nil,
// decides which refusals make a step estimated instead of failed. It returns the
// reason, or "" for a failure.
func NewWriter(c client.Client, estimate func(error) string) *Writer {
	if estimate == nil {
		estimate = func(error) string { return "" }
	}
	return &Writer{client: c, estimate: estimate}
}

// Done holds the results of a plan that was executed.
type Done struct {
	Outcomes []model.Outcome
	// CacheVersion is the cache's resourceVersion after its last write.
	CacheVersion string
}

// Execute sends the plan's steps in order. After a failed step the next ones still
// run, with two exceptions: the finalizer step, and every step of a deletion.
//
// The error is ErrStale, ErrBusy, the cause of the end of ctx (checked between two
// steps), a Fatal error, or a read that failed. Done holds the outcomes up to the
// error.
func (w *Writer) Execute(ctx context.Context, in model.Input, p model.Plan) (Done, error) {
	done := Done{CacheVersion: in.Cache.ResourceVersion}
	if len(p.Steps) == 0 {
		return done, nil
	}
	// The end of ctx must not cut a step short. It only stops the next one.
	request, end := outlasting(ctx)
	defer end()
	if p.Steps[0].Target.Kind != model.KindCache && !in.OnPaper {
		version, err := w.confirm(ctx, cmp.Or(in.Stored, in.Cache))
		if err != nil {
			return done, err
		}
		done.CacheVersion = version
	}
	before := earlier{}
	for _, step := range p.Steps {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		o, err := w.step(request, step, before[step.Target])
		if err != nil {
			return done, fmt.Errorf("%s %s: %w", step.Action, step.Target, err)
		}
		done.Outcomes = append(done.Outcomes, o)
		before.note(o)
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

// earlier records, by object, what the earlier steps of a plan did to it.
type earlier map[model.Ref]written

// written is the result of a step for its object.
type written struct {
	version string // the resourceVersion that the object has now
	undone  bool   // a dry run stored nothing, so the next step cannot be tried
}

// note records the outcome of a step.
func (e earlier) note(o model.Outcome) {
	switch {
	case o.Object != nil:
		e[o.Step.Target] = written{version: o.Object.GetResourceVersion()}
	case o.Step.Action == model.ActionOwn && o.Result == model.Configured:
		e[o.Step.Target] = written{undone: true}
	}
}

// confirm checks that the cache is still the one that was planned for. A pass may
// have been paused since it listed the fleet. It returns the current
// resourceVersion.
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

// step sends one step. The argument before is what an earlier step did to the same
// object.
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
		return model.Outcome{}, ErrStale // the deletion then continues without Jobs
	}
	if reason := w.estimate(err); reason != "" {
		return w.estimated(ctx, s, reason)
	}
	return model.Outcome{Step: s, Result: model.Failed, Err: withRule(err), Rejected: Rejected(err)}, nil
}

// estimated returns the outcome of a step that the server did not try. A create
// that was not tried cannot conflict with an existing object, so estimated looks
// for one itself.
func (w *Writer) estimated(ctx context.Context, s model.Step, reason string) (model.Outcome, error) {
	if s.Action == model.ActionCreate {
		key := client.ObjectKey{Namespace: s.Target.Namespace, Name: s.Target.Name}
		if err := w.client.Get(ctx, key, newObject(s.Target.Kind)); err == nil {
			return model.Outcome{}, ErrStale
		}
	}
	return model.Outcome{Step: s, Result: model.Estimated, Estimate: reason}, nil
}

// send sends a step in the way that its action asks for.
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

// Status writes the status of the cache, and reports whether the server stored it.
// The version is the last resourceVersion seen of the cache, because the status
// endpoint ignores a uid. If the server could not try the write, Status returns
// false without an error.
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

// maxEnding is how long a write may continue after the run was ended. It is less
// than the grace period of a pod, and leaves time for the report.
const maxEnding = 10 * time.Second

// outlasting returns a context for writes that the end of ctx should not cut short.
// The writes still end at most maxEnding later, even if the API server does not
// answer. The next pass repairs what a write without an answer left open.
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

// Fatal reports whether every other cache would meet the error too.
func Fatal(err error) bool { return apierrors.IsUnauthorized(err) || errors.Is(err, ErrThrottled) }

// Rejected reports whether the server would refuse the same request again. Other
// failures may be gone at the next try.
func Rejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// stale reports whether an answer means that the object is not the one that the
// plan saw.
func stale(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	// The object was deleted and created again under the same name.
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && apierrors.IsInvalid(err) && strings.HasSuffix(cause.Field, "metadata.uid")
}
