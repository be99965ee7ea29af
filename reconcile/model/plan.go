package model

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
)

// Kind is the kind of an object that a pass writes.
type Kind string

const (
	KindCache            Kind = v1.Kind
	KindStatefulSet      Kind = "StatefulSet"
	KindService          Kind = "Service"
	KindDisruptionBudget Kind = "PodDisruptionBudget"
	KindClaim            Kind = "PersistentVolumeClaim"
	KindPod              Kind = "Pod"
	KindJob              Kind = "Job"
)

// Ref names one object.
type Ref struct {
	Kind            Kind
	Namespace, Name string
}

// String returns the form of the reports: "StatefulSet shop/cache".
func (r Ref) String() string { return string(r.Kind) + " " + r.Namespace + "/" + r.Name }

// Action says what kind of write a Step is.
type Action string

const (
	// ActionCreate applies an object that does not exist. It fails if the object
	// exists by then.
	ActionCreate Action = "create"
	// ActionChange applies an object to the live object that the plan saw.
	ActionChange Action = "change"
	// ActionDelete deletes the live object that the plan saw.
	ActionDelete Action = "delete"
	// ActionOwn makes us the owner of fields that are in the way of the change that
	// follows on the same object. It writes only managedFields. The change then
	// removes the fields.
	ActionOwn Action = "own"
	// ActionReplace deletes the live StatefulSet that the plan saw, without its
	// nodes, and applies the intent in its place.
	ActionReplace Action = "replace"
	// ActionFinalize removes our finalizer from the cache and changes nothing else.
	ActionFinalize Action = "finalize"
)

// Step is one write.
type Step struct {
	Action Action
	Target Ref
	// Reason is one clause for people, such as "spec.replicas differs". It is mostly
	// empty for a create, whose reason is that the object does not exist.
	Reason string
	// Intent is what to apply (create, change, replace). It is nil otherwise.
	Intent runtime.ApplyConfiguration
	// Managers are the managedFields to write (own). They are nil otherwise.
	Managers []metav1.ManagedFieldsEntry
	// Live is the object that the plan saw. The write is valid only for its uid and
	// resourceVersion. It is nil for a create.
	Live fields.Object
	// Changes are the fields that differ, in path order (change).
	Changes []fields.Change
	// Restarts is the number of nodes that the StatefulSet controller replaces
	// because of the step.
	Restarts int32
	// Downgrade says from which version to which the step goes back. It is "" for
	// any other step.
	Downgrade string
	// Effects say in sentences what the step means for the cache's nodes and
	// keys, the most important first.
	Effects []string
	// After says what must be done before the step can be sent, such as "namespace
	// shop is created". It is set only for what exists on paper, and the step is
	// then not sent.
	After string
}

// Class says whether a Hold resolves by itself.
type Class string

const (
	// Waiting means that something else will resolve the Hold. It is not a failure.
	Waiting Class = "waiting"
	// Blocked means that a person must act.
	Blocked Class = "blocked"
)

// Gate names a rule that withholds something.
type Gate string

const (
	GateSuspended    Gate = "suspended"
	GateName         Gate = "name"
	GateSpec         Gate = "spec"
	GateTerminating  Gate = "terminating"
	GateNameConflict Gate = "name-conflict"
	GateConfig       Gate = "config"
	GateOverlay      Gate = "overlay"
	GateImmutable    Gate = "immutable"
	GateClients      Gate = "clients"
	GateGrowth       Gate = "growth"
	GateDeletion     Gate = "deletion"
)

// Hold is something that is wanted and withheld.
type Hold struct {
	Gate Gate `json:"gate"`
	// Target is what is withheld: a child, or the cache (everything).
	Target Ref `json:"target"`
	// Partial is set when only a field of Target is withheld. The rest of Target is
	// written.
	Partial bool `json:"-"`
	// Class says whether the Hold resolves by itself.
	Class Class `json:"class"`
	// Reason is a constant of package v1.
	Reason string `json:"reason"`
	// Message says what is withheld, where, and what to do. It is the same in every
	// pass while nothing changes.
	Message string `json:"message"`
	// Until is when the Hold resolves, if that is known.
	Until time.Time `json:"-"`
}

// Plan is what this pass will do to one cache.
type Plan struct {
	Steps []Step
	Holds []Hold
}
