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
	// Estimated: the step was not, or could not be, tried on the server; what it
	// would do is said from our own rendering and comparison.
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
	// Rejected tells a refusal, which the server would repeat (invalid,
	// forbidden, a webhook's no), from a passing failure.
	Rejected bool
	// Warning is said of a step that the server took and that did not give the
	// intended values.
	Warning string
	// Estimate is why a step is Estimated.
	Estimate string
}

// State is how a cache stands at the end of a pass.
type State string

const (
	// Settled: nothing to do and nothing under way.
	Settled State = "settled"
	// Progressing: something is under way that should end by itself.
	Progressing State = "progressing"
	// Stalled: a person must act.
	Stalled State = "stalled"
	// NotDone: this pass could not observe the cache or a step failed.
	NotDone State = "failed"
)

// Verdict is the state of a cache with its reason, a constant of package v1,
// and a sentence.
type Verdict struct {
	State   State
	Reason  string
	Message string
}

// CacheReport is all there is to say of one cache after a pass.
type CacheReport struct {
	Namespace, Name string
	Plan            Plan
	Outcomes        []Outcome
	Verdict         Verdict
	// Edit is what a manifest changes in the cache itself; nil without one.
	Edit *Edit
	// Standing is nil unless it was asked for.
	Standing *Standing
	// StatusWritten: the status differed and was written.
	StatusWritten bool
}

// Key is the cache's name.
func (r CacheReport) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// Edited reports whether a manifest changes the cache itself.
func (r CacheReport) Edited() bool {
	return r.Edit != nil && (r.Edit.New || len(r.Edit.Changes) > 0)
}

// Standing is how a cache stands in numbers.
type Standing struct {
	Ready, Size int32
	// Runs are the versions that ready nodes run, "1.6.38, 1.6.39"; empty: none
	// is ready. Wants is that of the spec.
	Runs, Wants string
	// Nodes are nil when they were not observed.
	Nodes []Node
}

// Node is one node of a cache. State is Ready, Starting, Terminating, Missing,
// or why the node is not ready (a reason of package v1), which Message says in a
// sentence.
type Node struct {
	Name    string
	State   string
	Message string
	Version string
	// Volume is the size of its volume, if it has one and volumes were observed.
	Volume string
	// Newest: it is of the newest revision.
	Newest bool
}

// Event is something to tell whoever looks at the cache later.
type Event struct {
	// Type is Normal or Warning; Reason and Action are one word each.
	Type, Reason, Action string
	// Note is a sentence.
	Note string
}
