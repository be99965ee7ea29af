package model

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/health"
)

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

// Owned keeps of the live objects those that this cache controls.
func (l Live) Owned(cache *v1.ClusteredCache) Live {
	var own Live
	if l.StatefulSet != nil && metav1.IsControlledBy(l.StatefulSet, cache) {
		own.StatefulSet = l.StatefulSet
	}
	if l.ClientService != nil && metav1.IsControlledBy(l.ClientService, cache) {
		own.ClientService = l.ClientService
	}
	if l.NodesService != nil && metav1.IsControlledBy(l.NodesService, cache) {
		own.NodesService = l.NodesService
	}
	if l.DisruptionBudget != nil && metav1.IsControlledBy(l.DisruptionBudget, cache) {
		own.DisruptionBudget = l.DisruptionBudget
	}
	return own
}

// Deletion is what is observed of a cache that is being deleted, and of no
// other.
type Deletion struct {
	// NamespaceTerminating: the namespace is being deleted; it takes no new
	// objects.
	NamespaceTerminating bool
	// Jobs have the names of the Jobs of the cache's hooks, whoever they belong
	// to; by name.
	Jobs map[string]*batchv1.Job
	// Pods are those of Jobs that have not ended.
	Pods []*corev1.Pod
}

// Volumes is what was observed of the volumes of a cache that wants larger ones.
type Volumes struct {
	// Claims are those of the cache's nodes, of former ones too, by ordinal.
	Claims []*corev1.PersistentVolumeClaim
	// Classes are the StorageClasses that the claims name.
	Classes map[string]Expansion
}

// Expansion says whether the volumes of a StorageClass can grow. The zero value
// is for a class that may not be read: the API server knows, and is asked by
// growing.
type Expansion string

const (
	ClassGrows   Expansion = "grows"
	ClassFixed   Expansion = "fixed"
	ClassMissing Expansion = "missing"
)

// Config is what was observed of the ConfigMap that spec.config names. The
// zero value means that the spec names none.
type Config struct {
	// Missing: the spec names a ConfigMap that does not exist.
	Missing bool
	// Hash of the content (resources.ConfigHash).
	Hash string
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
