package model

import (
	"k8s.io/apimachinery/pkg/types"

	"example.com/clusteredcache/reconcile/fields"
)

// Result says what the API server answered to a Step.
type Result string

const (
	Created    Result = "created"
	Configured Result = "configured"
	Unchanged  Result = "unchanged"
	Deleted    Result = "deleted"
	Replaced   Result = "replaced"
	Finalized  Result = "finalized"
	Failed     Result = "failed"
	// Estimated means that the step was not tried on the server, or could not be.
	// What it would do comes from our own rendering and comparison.
	Estimated Result = "estimated"
)

// Outcome is what became of a Step.
type Outcome struct {
	Step   Step
	Result Result
	// Object is what the server returned (created, configured, unchanged).
	Object fields.Object
	// Err is set when Result is Failed.
	Err error
	// Rejected is set for a refusal that the server would repeat: invalid,
	// forbidden, or refused by a webhook. It is not set for a transient failure.
	Rejected bool
	// Warning is set when the server accepted the step and did not store the
	// intended values.
	Warning string
	// Estimate is why a step is Estimated.
	Estimate string
}

// State is the state of a cache at the end of a pass.
type State string

const (
	// Settled means that nothing is left to do and nothing is under way.
	Settled State = "settled"
	// Progressing means that something is under way that should end by itself.
	Progressing State = "progressing"
	// Stalled means that a person must act.
	Stalled State = "stalled"
	// NotDone means that this pass could not observe the cache or that a step
	// failed.
	NotDone State = "failed"
)

// Verdict is the state of a cache with its reason (a constant of package v1) and
// a sentence.
type Verdict struct {
	State   State
	Reason  string
	Message string
}

// CacheReport is everything that a pass reports about one cache.
type CacheReport struct {
	Namespace, Name string
	Plan            Plan
	Outcomes        []Outcome
	Verdict         Verdict
	// Edit is what a manifest changes in the cache itself. It is nil without a
	// manifest.
	Edit *Edit
	// Standing is nil unless the caller asked for it.
	Standing *Standing
	// StatusWritten is set when the status differed and was written.
	StatusWritten bool
}

// Key returns the namespace and name of the cache.
func (r CacheReport) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// Edited reports whether a manifest changes the cache itself.
func (r CacheReport) Edited() bool {
	return r.Edit != nil && (r.Edit.New || len(r.Edit.Changes) > 0)
}

// Standing is the state of a cache in numbers.
type Standing struct {
	Ready, Size int32
	// Runs has the versions that ready nodes run, such as "1.6.38, 1.6.39". It is
	// empty while every node is unready. Wants is the version in the spec.
	Runs, Wants string
	// Nodes is nil when the nodes were not observed.
	Nodes []Node
}

// Node is one node of a cache. State is Ready, Starting, Terminating, Missing or
// a reason of package v1. With a reason, Message says in a sentence why the node is
// not ready.
type Node struct {
	Name    string
	State   string
	Message string
	Version string
	// Volume is the size of the node's volume. It is empty without a volume, or if
	// volumes were not observed.
	Volume string
	// Newest is set when the node has the newest revision.
	Newest bool
}

// Event is an Event on a cache, for a person who reads about the cache later.
type Event struct {
	// Type is Normal or Warning. Reason and Action are one word each.
	Type, Reason, Action string
	// Note is a sentence.
	Note string
}
