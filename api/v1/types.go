package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Engine names what runs in a cache's nodes.
// +kubebuilder:validation:Enum=Memcached;Custom
type Engine string

const (
	// EngineMemcached is the default: independent memcached nodes. Clients spread
	// their keys over them.
	EngineMemcached Engine = "Memcached"
	// EngineCustom is any other cache server. spec.image names it.
	EngineCustom Engine = "Custom"
)

// RetainPolicy says what happens to the claims of a deleted cache. A claim is a
// PersistentVolumeClaim.
// +kubebuilder:validation:Enum=Retain;Delete
type RetainPolicy string

const (
	// RetainPolicyRetain keeps the claims when the cache is deleted.
	RetainPolicyRetain RetainPolicy = "Retain"
	// RetainPolicyDelete deletes the claims with the cache.
	RetainPolicyDelete RetainPolicy = "Delete"
)

// ClusteredCacheSpec is the wanted state of a cache.
//
// +kubebuilder:validation:XValidation:rule="self.engine == 'Custom' || !has(self.storage)",message="storage needs engine Custom: memcached keeps nothing on disk"
// +kubebuilder:validation:XValidation:rule="self.engine != 'Custom' || (has(self.image) && size(self.image) > 0)",message="image is required with engine Custom"
type ClusteredCacheSpec struct {
	// engine says what runs in the nodes. It cannot be changed later.
	// +kubebuilder:default=Memcached
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="engine is immutable: create a new ClusteredCache"
	// +optional
	Engine Engine `json:"engine,omitempty"`

	// version is the image tag, `tag@sha256:<digest>` or `sha256:<digest>` to run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=264
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|sha256:[0-9a-f]{64})$')",message="version must be an image tag (letters, digits, '_', '.', '-'; at most 128), tag@sha256:<64 hex digits>, or sha256:<64 hex digits>"
	Version string `json:"version"`

	// size is the number of nodes. If omitted, it is 1 until an autoscaler or
	// `kubectl scale` sets it. It is at most 1000, so that a typing error does not
	// overload the controllers of the cluster.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Size int32 `json:"size,omitempty"`

	// image is the repository to pull from, without tag or digest. The default is
	// the image of the engine. Engine Custom requires it.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*$')",message="image is a repository without tag or digest, such as registry.example.com/team/cache"
	// +optional
	Image string `json:"image,omitempty"`

	// port is where nodes listen. It is also the port of both Services. The
	// default depends on the engine: Memcached 11211, Custom 8080.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// args are the arguments of the container. For Memcached they follow the
	// derived arguments. A derived flag that args already contains is not added.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// resources are those of the cache container. For Memcached, the memory for
	// items (-m) is derived from the memory limit.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// storage gives every node its own volume, mounted at /data. Only for engine
	// Custom.
	// +optional
	Storage *StorageSpec `json:"storage,omitempty"`

	// config names a ConfigMap that is mounted at /etc/cache. A change of its
	// content restarts the nodes one by one.
	// +optional
	Config *ConfigReference `json:"config,omitempty"`

	// rollout sets the times of a rollout.
	// +optional
	Rollout *RolloutSpec `json:"rollout,omitempty"`

	// podTemplate is a partial PodTemplateSpec for settings that have no field here
	// (affinity, sidecars, tolerations, ...). It is merged over the pod template of
	// the nodes by strategic merge.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`

	// deletion says what happens between the deletion of the cache and its end.
	// +optional
	Deletion *DeletionSpec `json:"deletion,omitempty"`

	// suspend leaves the children and the finalizer as they are. The status is
	// still written.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// RolloutSpec sets the times of a rollout.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReadySeconds) || !has(self.progressDeadlineSeconds) || self.minReadySeconds < self.progressDeadlineSeconds",message="minReadySeconds must be less than progressDeadlineSeconds"
type RolloutSpec struct {
	// progressDeadlineSeconds is how long nodes may make no progress before the
	// cache is stalled (reason ProgressDeadlineExceeded). The time counts from the
	// last sign of progress, such as a change of the StatefulSet by a pass, or of
	// the readiness of a node. Nothing is rolled back.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// minReadySeconds is how long a node must be ready before the rollout continues
	// with the next node.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
}

// StorageSpec describes the volume of each node.
type StorageSpec struct {
	// size is the capacity that the PersistentVolumeClaim (claim) of each node asks
	// for.
	Size resource.Quantity `json:"size"`

	// storageClassName is the StorageClass of the claims. The default is the
	// default class of the cluster.
	// +kubebuilder:validation:MinLength=1
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// retain says what happens to the claims when the cache is deleted. Claims of
	// nodes that a smaller size removes are always kept.
	// +kubebuilder:default=Retain
	// +optional
	Retain RetainPolicy `json:"retain,omitempty"`
}

// ConfigReference names a ConfigMap in the namespace of the cache.
type ConfigReference struct {
	// name is the name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ClusteredCacheStatus is what the last pass saw. Every number comes from the
// StatefulSet that the API server returned last.
type ClusteredCacheStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// It is -1 before any pass.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`

	// replicas is the number of nodes that exist.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of nodes that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// updatedReplicas is the number of nodes on the newest revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// currentVersion is the version that every node runs. It changes when the last
	// node runs the new version.
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`

	// selector finds the pods of the cache. It is a label query, for the scale
	// subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// nodes are the stable addresses of the nodes, host:port, in order.
	// +listType=atomic
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// conditions are Available, Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The name rule below applies only at creation: afterwards oldSelf has a value. So
// a cache that was stored before the rule can still be deleted. 52 characters leave
// room for the revision hash in a label of the pods.

// ClusteredCache is a cluster of cache nodes on Kubernetes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusteredcaches,singular=clusteredcache,shortName=cc,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="name must be at most 52 characters: a lower-case letter, then lower-case letters, digits or '-', ending in a letter or digit (it names Services and pods)"
type ClusteredCache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusteredCacheSpec `json:"spec"`

	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ClusteredCacheStatus `json:"status,omitzero"`
}

// ClusteredCacheList is a list of ClusteredCaches.
// +kubebuilder:object:root=true
type ClusteredCacheList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusteredCache `json:"items"`
}
