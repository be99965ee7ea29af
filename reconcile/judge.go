package reconcile

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// consequence is the effect of an error on the run.
type consequence string

const (
	// again means that the cluster has changed. Observe and plan this cache again
	// now.
	again consequence = "again"
	// nextPass means that the error may be gone by then. The next pass continues
	// with this cache.
	nextPass consequence = "next pass"
	// thisCache means that this cache fails and the others are not affected.
	thisCache consequence = "this cache"
	// everyCache means that every other cache would meet the error too. The run
	// ends.
	everyCache consequence = "every cache"
)

// activity is what a run was doing when it met an error.
type activity int

const (
	listing  activity = iota // reading the caches of the first pass
	visiting                 // bringing one cache closer to its spec
	waiting                  // reading an unsettled cache again
)

// nature is the kind of an error, independent of the activity.
type nature int

const (
	moved     nature = iota // the cluster has changed since the plan was made
	contended               // others keep writing the same object
	own                     // the error concerns only this cache
	refused                 // the API server would refuse again
	transient               // the error may be gone at the next try
	fatal                   // the error concerns our identity or the whole API server
)

// consequences maps the nature of an error and the activity to the consequence. If
// a read fails while the fleet is listed, caches are missing, so the run ends.
// Later the same failure only delays one cache.
var consequences = map[nature]map[activity]consequence{
	moved:     {listing: thisCache, visiting: again, waiting: thisCache},
	contended: {listing: thisCache, visiting: nextPass, waiting: thisCache},
	own:       {listing: thisCache, visiting: thisCache, waiting: thisCache},
	refused:   {listing: everyCache, visiting: thisCache, waiting: everyCache},
	transient: {listing: everyCache, visiting: thisCache, waiting: nextPass},
	fatal:     {listing: everyCache, visiting: everyCache, waiting: everyCache},
}

// judge returns what an error means for the run.
func judge(err error, during activity) consequence { return consequences[natureOf(err)][during] }

// natureOf returns the nature of an error.
func natureOf(err error) nature {
	switch {
	case apply.Fatal(err):
		return fatal
	case errors.Is(err, apply.ErrStale):
		return moved
	case errors.Is(err, apply.ErrBusy):
		return contended
	case errors.Is(err, apply.ErrRefused), errors.Is(err, observe.ErrNotFound), errors.Is(err, observe.ErrUndecodable),
		errors.Is(err, errGone), errors.As(err, new(*manifest.Error)):
		return own
	case apply.Rejected(err):
		return refused
	}
	return transient
}

// tryAgain reports whether steps failed and each of them may succeed at the next
// try.
func tryAgain(outcomes []model.Outcome) bool {
	failed := 0
	for _, o := range outcomes {
		if o.Result != model.Failed {
			continue
		}
		if o.Rejected || apierrors.IsTooManyRequests(o.Err) { // a 429 was already waited for
			return false
		}
		failed++
	}
	return failed > 0
}

// interrupted is the verdict on a cache that the end of the run left half done.
var interrupted = model.Verdict{State: model.NotDone, Reason: v1.ReasonInterrupted, Message: "the run ended before the cache was done; the next pass continues"}

// errGone reports that a cache existed earlier in the run and does not exist now.
var errGone = errors.New("deleted meanwhile")

// unobserved returns the verdict on a cache that could not be observed because of
// err.
func unobserved(err error) model.Verdict {
	v := model.Verdict{State: model.NotDone, Reason: v1.ReasonApplyFailed, Message: err.Error()}
	switch {
	case errors.Is(err, errGone):
		v.State, v.Reason = model.Settled, v1.ReasonGone
	case errors.Is(err, observe.ErrNotFound):
		v.Reason = v1.ReasonNotFound
	case errors.Is(err, observe.ErrUndecodable):
		v.Reason = v1.ReasonUndecodable
	case errors.Is(err, apply.ErrRefused), errors.As(err, new(*manifest.Error)):
		v.Reason = v1.ReasonApplyRejected
	}
	return v
}
