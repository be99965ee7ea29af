package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// TestEarlier checks what a step learns of an earlier step on the same object.
func TestEarlier(t *testing.T) {
	set := model.Ref{Kind: model.KindStatefulSet, Namespace: "shop", Name: "cache"}
	at := func(version string) fields.Object {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	outcome := func(action model.Action, result model.Result, o fields.Object) model.Outcome {
		return model.Outcome{Step: model.Step{Action: action, Target: set}, Result: result, Object: o}
	}
	tests := []struct {
		name string
		// wrong is what would happen if note did otherwise.
		wrong    string
		outcomes []model.Outcome
		want     earlier
	}{
		{"an object came back", "the next write would carry the version of the plan, and conflict with our own write",
			[]model.Outcome{outcome(model.ActionOwn, model.Configured, at("8"))}, earlier{set: {version: "8"}}},
		{"two objects came back", "the third write would carry the version between the two",
			[]model.Outcome{outcome(model.ActionOwn, model.Configured, at("8")), outcome(model.ActionChange, model.Configured, at("9"))},
			earlier{set: {version: "9"}}},
		{"a dry run owned fields", "the change that follows would be tried without the ownership, and its result would be wrong",
			[]model.Outcome{outcome(model.ActionOwn, model.Configured, nil)}, earlier{set: {undone: true}}},
		{"owning fields failed", "the change that follows would not be tried",
			[]model.Outcome{outcome(model.ActionOwn, model.Failed, nil)}, earlier{}},
		{"a deletion", "a later step on the object would be called estimated",
			[]model.Outcome{outcome(model.ActionDelete, model.Deleted, nil)}, earlier{}},
		{"an estimate", "a later step on the object would be called estimated for the wrong reason",
			[]model.Outcome{outcome(model.ActionChange, model.Estimated, nil)}, earlier{}},
	}
	for _, test := range tests {
		got := earlier{}
		for _, o := range test.outcomes {
			got.note(o)
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(written{})); diff != "" {
			t.Errorf("%s: %s:\n%s", test.name, test.wrong, diff)
		}
	}
}

// answer returns an error of the API server, from the JSON that it sent.
func answer(t *testing.T, status string) error {
	t.Helper()
	e := &apierrors.StatusError{}
	if err := json.Unmarshal([]byte(status), &e.ErrStatus); err != nil {
		t.Fatal(err)
	}
	return e
}

// invalid is the answer to an apply whose value of a field is refused.
const invalid = `{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid",
	"message": "StatefulSet.apps \"cache\" is invalid: %[1]s: Invalid value: \"x\": field is immutable",
	"details": {"name": "cache", "group": "apps", "kind": "StatefulSet", "causes": [
		{"reason": "FieldValueInvalid", "message": "Invalid value: \"x\": field is immutable", "field": "%[1]s"}]}}`

// TestAnswers checks which answers of an API server count as stale, Rejected and
// Fatal. An answer that is none of these is tried again.
func TestAnswers(t *testing.T) {
	sets := schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	type judgement struct{ Stale, Rejected, Fatal bool }
	moved, refused, fatal := judgement{Stale: true}, judgement{Rejected: true}, judgement{Fatal: true}
	tests := []struct {
		name  string
		wrong string // what would happen with another judgement
		err   error
		want  judgement
	}{
		{"conflict", "a newer object would be a failure instead of a new plan",
			apierrors.NewConflict(sets, "cache", errors.New("the object has been modified")), moved},
		{"wrapped conflict", "a message around the answer would hide it",
			fmt.Errorf("replacing: %w", apierrors.NewConflict(sets, "cache", errors.New("x"))), moved},
		{"already exists", "a race with another pass would be a failure",
			apierrors.NewAlreadyExists(sets, "cache"), moved},
		{"another uid", "an object that was deleted and created again would be a failure",
			answer(t, fmt.Sprintf(invalid, "metadata.uid")), judgement{Stale: true, Rejected: true}},
		{"another field is invalid", "a refused spec would be planned again and again",
			answer(t, fmt.Sprintf(invalid, "spec.serviceName")), refused},
		{"a field whose name only ends like a uid", "a refused label would be planned again and again",
			answer(t, fmt.Sprintf(invalid, "metadata.uidx")), refused},
		{"not found", "a missing namespace would be tried again", apierrors.NewNotFound(sets, "cache"), refused},
		{"forbidden", "a missing right would be tried again", apierrors.NewForbidden(sets, "cache", errors.New("no")), refused},
		{"bad request", "a field that the server cannot decode would be tried again", apierrors.NewBadRequest("no"), refused},
		{"method not allowed", "a resource without apply would be tried again", apierrors.NewMethodNotSupported(sets, "patch"), refused},
		{"too large", "a body that is too large would be sent again", apierrors.NewRequestEntityTooLargeError("no"), refused},
		{"unauthorized", "each of ten thousand caches would meet it", apierrors.NewUnauthorized("expired"), fatal},
		{"throttled too long", "each of ten thousand caches would wait", fmt.Errorf("%w: 429", ErrThrottled), fatal},
		{"one 429", "one busy moment would end the run", apierrors.NewTooManyRequests("busy", 1), judgement{}},
		{"server error", "a restart of the API server would be final", apierrors.NewInternalError(errors.New("etcd")), judgement{}},
		{"server timeout", "a slow API server would be final", apierrors.NewServerTimeout(sets, "patch", 1), judgement{}},
		{"no connection", "a lost connection would be final",
			&url.Error{Op: "Patch", URL: "https://s", Err: syscall.ECONNREFUSED}, judgement{}},
	}
	for _, test := range tests {
		got := judgement{stale(test.err), Rejected(test.err), Fatal(test.err)}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v: %s", test.name, got, test.want, test.wrong)
		}
	}
}

// TestWithRule checks that only a refusal to set an owner reference gets advice.
func TestWithRule(t *testing.T) {
	sets := schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	owner := "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
	tests := []struct {
		name, wrong string
		err         error
		want        bool
	}{
		{"OpenShift", "a person would have to guess the missing right", apierrors.NewForbidden(sets, "cache", errors.New(owner)), true},
		{"another right", "the advice would be wrong", apierrors.NewForbidden(sets, "cache", errors.New("exceeded quota")), false},
		{"another answer with these words", "the advice would be wrong", apierrors.NewBadRequest(owner), false},
	}
	for _, test := range tests {
		got := withRule(test.err)
		if !errors.Is(got, test.err) || apierrors.IsForbidden(got) != apierrors.IsForbidden(test.err) {
			t.Errorf("%s: the answer got lost in %v", test.name, got)
		}
		advice := "allow the verb update on clusteredcaches/finalizers in API group cache.example.com"
		if strings.Contains(got.Error(), advice) != test.want {
			t.Errorf("%s: %s: %v", test.name, test.wrong, got)
		}
	}
}
