package reconcile

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/clusteredcache/reconcile/apply"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// TestJudge checks the consequence of each nature of an error in each activity.
func TestJudge(t *testing.T) {
	caches := schema.GroupResource{Group: "cache.example.com", Resource: "clusteredcaches"}
	type row = map[activity]consequence
	tests := []struct {
		nature nature
		// wrong is what another consequence would lead to.
		wrong string
		errs  []error
		want  row
	}{
		{moved, "a cache that changed would fail, or would be read in a loop while others wait",
			[]error{apply.ErrStale},
			row{listing: thisCache, visiting: again, waiting: thisCache}},
		{contended, "a controller that writes in a loop would hold up the pass",
			[]error{apply.ErrBusy},
			row{listing: thisCache, visiting: nextPass, waiting: thisCache}},
		{own, "one bad cache would end the run",
			[]error{apply.ErrRefused, observe.ErrNotFound, observe.ErrUndecodable, errGone,
				&manifest.Error{Source: "x.yaml", Err: errors.New("bad")},
				fmt.Errorf("%w: %w", apply.ErrRefused, apierrors.NewBadRequest("no"))},
			row{listing: thisCache, visiting: thisCache, waiting: thisCache}},
		{refused, "a missing right to list would be an incomplete fleet, or a missing right to write would end the run",
			[]error{apierrors.NewForbidden(caches, "", errors.New("no")), apierrors.NewNotFound(caches, "x"), apierrors.NewBadRequest("no")},
			row{listing: everyCache, visiting: thisCache, waiting: everyCache}},
		{transient, "a lost connection would be an incomplete fleet, or would end the waiting",
			[]error{&url.Error{Op: "Get", URL: "https://s", Err: syscall.ECONNREFUSED}, apierrors.NewInternalError(errors.New("etcd")),
				apierrors.NewTooManyRequests("busy", 1), errors.New("unknown")},
			row{listing: everyCache, visiting: thisCache, waiting: nextPass}},
		{fatal, "ten thousand caches would meet the same error, one after the other",
			[]error{apierrors.NewUnauthorized("expired"), apply.ErrThrottled},
			row{listing: everyCache, visiting: everyCache, waiting: everyCache}},
	}
	for _, test := range tests {
		for _, err := range test.errs {
			for _, err := range []error{err, fmt.Errorf("reading: %w", err)} {
				if got := natureOf(err); got != test.nature {
					t.Errorf("%v: nature %d, want %d", err, got, test.nature)
				}
				for during, want := range test.want {
					if got := judge(err, during); got != want {
						t.Errorf("%v, activity %d: got %q, want %q: %s", err, during, got, want, test.wrong)
					}
				}
			}
		}
	}
	if len(tests) != len(consequences) {
		t.Errorf("%d natures are tested, and %d exist", len(tests), len(consequences))
	}
}

// TestTryAgain checks when a cache is visited again because of failed steps.
func TestTryAgain(t *testing.T) {
	lost := model.Outcome{Result: model.Failed, Err: errors.New("connection lost")}
	refusal := model.Outcome{Result: model.Failed, Err: errors.New("invalid"), Rejected: true}
	busy := model.Outcome{Result: model.Failed, Err: apierrors.NewTooManyRequests("busy", 1)}
	created := model.Outcome{Result: model.Created}
	tests := []struct {
		name, wrong string
		outcomes    []model.Outcome
		want        bool
	}{
		{"nothing", "a converged cache would be visited five times", nil, false},
		{"success", "a cache would be visited five times", []model.Outcome{created}, false},
		{"a lost connection", "one lost packet would fail the cache", []model.Outcome{created, lost}, true},
		{"a refusal", "the server would repeat the refusal", []model.Outcome{refusal}, false},
		{"both", "the server would repeat the refusal", []model.Outcome{lost, refusal}, false},
		{"a 429", "the request has already waited for as long as a run waits", []model.Outcome{lost, busy}, false},
	}
	for _, test := range tests {
		if got := tryAgain(test.outcomes); got != test.want {
			t.Errorf("%s: got %v, want %v: %s", test.name, got, test.want, test.wrong)
		}
	}
}
