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
	// ActionCreate applies an object that was not there; it fails if one is.
	ActionCreate Action = "create"
	// ActionChange applies an object to the live one that the plan saw.
	ActionChange Action = "change"
	// ActionDelete deletes the live object that the plan saw.
	ActionDelete Action = "delete"
	// ActionOwn makes ours, in managedFields alone, what stands in the way of
	// the change that follows on the same object, so that the change removes it.
	ActionOwn Action = "own"
	// ActionReplace deletes the live StatefulSet that the plan saw, without its
	// nodes, and applies the intent in its place.
	ActionReplace Action = "replace"
	// ActionFinalize removes our finalizer, and nothing else, from the cache.
	ActionFinalize Action = "finalize"
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
	// Managers are the managedFields to write (own); nil otherwise.
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

// Gate names a rule that withholds.
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

// Hold is something wanted but withheld.
type Hold struct {
	Gate Gate `json:"gate"`
	// Target is what is withheld: a child, or the cache (everything).
	Target Ref `json:"target"`
	// Partial: only a field of Target is withheld; the rest of it goes through.
	Partial bool `json:"-"`
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
