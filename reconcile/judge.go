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

// consequence is what an error means for the run.
type consequence string

const (
	// again: the cluster has moved on; observe and plan this cache anew, now.
	again consequence = "again"
	// nextPass: it may be gone by then; the next pass goes on with this cache.
	nextPass consequence = "next pass"
	// thisCache: this cache fails, and the others go on.
	thisCache consequence = "this cache"
	// everyCache: every other cache would meet it too; the run ends.
	everyCache consequence = "every cache"
)

// activity is what a run does when it meets an error.
type activity int

const (
	listing  activity = iota // the caches of the first pass are read
	visiting                 // one cache is brought closer to its spec
	waiting                  // an unsettled cache is read anew
)

// nature is what an error says, wherever it is met.
type nature int

const (
	moved     nature = iota // the cluster is no longer what the plan saw
	contended               // others keep writing the same object
	own                     // it speaks of this cache alone
	refused                 // the API server would repeat it
	transient               // it may be gone at the next try
	fatal                   // it speaks of us, or of the API server as a whole
)

// consequences: a read that fails while the fleet is listed leaves caches unseen,
// so it ends the run. The same failure later costs one cache its turn.
var consequences = map[nature]map[activity]consequence{
	moved:     {listing: thisCache, visiting: again, waiting: thisCache},
	contended: {listing: thisCache, visiting: nextPass, waiting: thisCache},
	own:       {listing: thisCache, visiting: thisCache, waiting: thisCache},
	refused:   {listing: everyCache, visiting: thisCache, waiting: everyCache},
	transient: {listing: everyCache, visiting: thisCache, waiting: nextPass},
	fatal:     {listing: everyCache, visiting: everyCache, waiting: everyCache},
}

// judge says what an error means for the run.
func judge(err error, during activity) consequence { return consequences[natureOf(err)][during] }

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
		if o.Rejected || apierrors.IsTooManyRequests(o.Err) { // it was waited for
			return false
		}
		failed++
	}
	return failed > 0
}

// interrupted is the verdict on a cache in whose middle the run ended.
var interrupted = model.Verdict{State: model.NotDone, Reason: v1.ReasonInterrupted, Message: "ended before the cache was done; the next pass goes on"}

// errGone says that a cache was there earlier in the run.
var errGone = errors.New("deleted meanwhile")

// unobserved is the verdict on a cache that an error kept from being observed.
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
