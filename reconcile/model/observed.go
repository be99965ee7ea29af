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

// Input is what was observed of one cache. Nobody changes anything in it.
type Input struct {
	Cache  *v1.ClusteredCache
	Live   Live
	Config Config
	// Deletion is observed only for a cache that is being deleted.
	Deletion Deletion
	// OldClaims has the names of existing claims that the nodes of a new StatefulSet
	// would use. It is observed only for a cache with storage and without
	// StatefulSet.
	OldClaims []string
	// Nodes is nil unless plan.NeedsNodes returned true.
	Nodes *health.Nodes
	// Volumes is nil unless plan.NeedsVolumes returned true.
	Volumes *Volumes
	// Now is the pass's one clock reading, the same for all its caches. For a cache
	// that is being deleted it is read again, so that it is as new as the rest.
	Now time.Time
	// Stored is the stored cache when Cache is what a manifest would make of it. It
	// is nil without a manifest.
	Stored *v1.ClusteredCache
	// Edit is the difference between Stored and Cache. It is nil without a manifest.
	Edit *Edit
	// OnPaper is set when the cache is not stored. NoNamespace is set when its
	// namespace does not exist either.
	OnPaper, NoNamespace bool
}

// Live has the objects with the names of the cache's children, whatever their
// owner. A field is nil when the object does not exist.
type Live struct {
	StatefulSet      *appsv1.StatefulSet
	ClientService    *corev1.Service
	NodesService     *corev1.Service
	DisruptionBudget *policyv1.PodDisruptionBudget
}

// Owned returns the live objects that this cache controls.
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

// Deletion is what is observed only of a cache that is being deleted.
type Deletion struct {
	// NamespaceTerminating is set when the namespace is being deleted. It then
	// accepts no new objects.
	NamespaceTerminating bool
	// Jobs has, by name, the objects with the names of the Jobs of the cache's
	// hooks, whatever their owner.
	Jobs map[string]*batchv1.Job
	// Pods lists the pods of the Jobs that have not ended.
	Pods []*corev1.Pod
}

// Volumes is what was observed of the volumes of a cache that wants larger ones.
type Volumes struct {
	// Claims lists the claims of the cache's nodes and former nodes, by ordinal.
	Claims []*corev1.PersistentVolumeClaim
	// Classes has, by name, the StorageClasses of the claims.
	Classes map[string]Expansion
}

// Expansion says whether the volumes of a StorageClass can grow. The zero value
// stands for a class that we may not read. The API server can read it, and decides
// when a claim asks for more.
type Expansion string

const (
	ClassGrows   Expansion = "grows"
	ClassFixed   Expansion = "fixed"
	ClassMissing Expansion = "missing"
)

// Config is what was observed of the ConfigMap that spec.config names. It is the
// zero value for a spec without config.
type Config struct {
	// Missing is set when the ConfigMap does not exist.
	Missing bool
	// Hash is the hash of the content (resources.ConfigHash).
	Hash string
}

// Edit is the difference between a stored cache and the manifest that is planned
// in its place.
type Edit struct {
	// New is set when the cache is not stored yet.
	New bool
	// Estimate is why the API server was not asked what it would make of the
	// manifest. It is "" if the server was asked.
	Estimate string
	// Changes lists the changes in spec, labels and annotations, in path order. It
	// is empty for a new cache.
	Changes []fields.Change
}
