package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/health"
)

// Ref names one object.
type Ref struct {
	Kind, Namespace, Name string
}

// String is the form of the reports: "StatefulSet shop/cache".
func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Input is what was observed of one cache. Nothing in it is written to.
type Input struct {
	Cache  *v1.ClusteredCache
	Live   Live
	Config Config
	// Deletion is what is observed only of a cache that is being deleted.
	Deletion Deletion
	// OldClaims are the claims, by name, that the nodes of a StatefulSet that
	// does not exist yet would find; observed only for one with storage.
	OldClaims []string
	// Nodes is nil unless NeedsNodes.
	Nodes *health.Nodes
	// Volumes is nil unless NeedsVolumes.
	Volumes *Volumes
	// Now is the pass's one clock reading, or for a cache that is being deleted,
	// one that is as new as the rest.
	Now time.Time
	// Stored is the cache as it is stored, when Cache is what a manifest would
	// make of it; nil otherwise.
	Stored *v1.ClusteredCache
	// Edit is the difference between the two; nil without a manifest.
	Edit *Edit
	// OnPaper: the cache is not stored; NoNamespace: its namespace neither.
	OnPaper, NoNamespace bool
}

// Live holds the objects that have the names of the cache's children, whoever
// they belong to; nil: there is none.
type Live struct {
	StatefulSet      *appsv1.StatefulSet
	ClientService    *corev1.Service
	NodesService     *corev1.Service
	DisruptionBudget *policyv1.PodDisruptionBudget
}

// Config is what was observed of the ConfigMap that spec.config names. The
// zero value means that the spec names none.
type Config struct {
	// Missing: the spec names a ConfigMap that does not exist.
	Missing bool
	// Hash of the content (resources.ConfigHash).
	Hash string
}

// Action says what kind of write a Step is.
type Action string

const (
	// ActionCreate applies an object that was not there; it fails if one is.
	ActionCreate Action = "create"
	// ActionChange applies an object to the live one that the plan saw.
	ActionChange Action = "change"
	// ActionDelete deletes the live object that the plan saw.
	ActionDelete Action = "delete"
	// ActionClaim makes ours, in managedFields alone, what stands in the way of
	// the change that follows on the same object, so that the change removes it.
	ActionClaim Action = "claim"
	// ActionReplace deletes the live StatefulSet that the plan saw, without its
	// nodes, and applies the intent in its place.
	ActionReplace Action = "replace"
	// ActionRelease removes our finalizer, and nothing else, from the cache.
	ActionRelease Action = "release"
)

// Step is one write.
type Step struct {
	Action Action
	Target Ref
	// Reason is one clause for people, such as "spec.replicas differs"; mostly
	// empty for a create: there is no object.
	Reason string
	// Intent is what to apply (create, change, replace); nil otherwise.
	Intent runtime.ApplyConfiguration
	// Managers are the managedFields to write (claim); nil otherwise.
	Managers []metav1.ManagedFieldsEntry
	// Live is the object that the plan saw (all but create): the
	// write holds only for this uid and resourceVersion.
	Live fields.Object
	// Changes are the fields that differ, in path order (change).
	Changes []fields.Change
	// Restarts is the number of nodes that the step makes the StatefulSet
	// controller replace.
	Restarts int32
	// Downgrade says from which version to which, when the step is one; "": it
	// is none.
	Downgrade string
	// Effects say in sentences what the step means for the cache's nodes and
	// keys, the most important first.
	Effects []string
	// After says what must be there before the step can be sent, when that
	// exists only on paper ("namespace shop is created"): the step is not sent.
	After string
}

// Class says whether a Hold resolves by itself.
type Class string

const (
	// Waiting: something else will resolve it; no failure.
	Waiting Class = "waiting"
	// Blocked: a person must act.
	Blocked Class = "blocked"
)

// Hold is something wanted but withheld.
type Hold struct {
	// Gate is the name of the rule that withholds.
	Gate string `json:"gate"`
	// Target is what is withheld: a child, or the cache (everything).
	Target Ref `json:"target"`
	// Class, Reason (a constant of package v1) and Message (what, where, what
	// to do; the same in every pass while nothing changes).
	Class   Class  `json:"class"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Until is when it resolves, if that is known.
	Until time.Time `json:"-"`
}

// Plan is what this pass will do to one cache.
type Plan struct {
	Steps []Step
	Holds []Hold
}

// Result says what the API server answered to a Step.
type Result string

const (
	Created    Result = "created"
	Configured Result = "configured"
	Unchanged  Result = "unchanged"
	Deleted    Result = "deleted"
	Replaced   Result = "replaced"
	Released   Result = "released"
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

// Report is all there is to say of one cache after a pass.
type Report struct {
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

// Edit is the difference between a stored cache and the manifest that the plan
// takes in its place.
type Edit struct {
	// New: the cache is not stored yet.
	New bool
	// Estimate is why the API server was not asked what it would make of the
	// manifest; "": it was.
	Estimate string
	// Changes in spec, labels and annotations, in path order; none for a new
	// cache.
	Changes []fields.Change
}

// Event is something to tell whoever looks at the cache later.
type Event struct {
	// Type is Normal or Warning; Reason and Action are one word each.
	Type, Reason, Action string
	// Note is a sentence.
	Note string
}
