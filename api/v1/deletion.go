package v1

import corev1 "k8s.io/api/core/v1"

// OnFailure says what a hook that failed means for the deletion.
// +kubebuilder:validation:Enum=Block;Continue
type OnFailure string

const (
	// OnFailureBlock keeps the cache until a person has acted.
	OnFailureBlock OnFailure = "Block"
	// OnFailureContinue passes over the hook.
	OnFailureContinue OnFailure = "Continue"
)

// DeletionSpec is the checklist of a deletion: traffic is taken away (the
// Service of the clients is deleted), clients are given time to leave, the
// hooks run one after the other, and then the cache and its children go.
type DeletionSpec struct {
	// drainSeconds is how long clients are given to leave before the first hook
	// runs, or without hooks, before the nodes go.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DrainSeconds int32 `json:"drainSeconds,omitempty"`

	// hooks run in this order, each to its success before the next.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(other, other.name == h.name))",message="every hook needs a name of its own"
	// +listType=atomic
	// +optional
	Hooks []Hook `json:"hooks,omitempty"`

	// onFailure says what becomes of the deletion when a hook has used up its
	// attempts or its time: Block keeps the cache, Continue passes over the hook.
	// +kubebuilder:default=Block
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`
}

// Hook is a Job that runs in the cache's namespace while the cache is being
// deleted. Its container sees CACHE_NAME, CACHE_NAMESPACE, CACHE_UID,
// CACHE_VERSION, CACHE_SERVICE (the Service of the nodes, which is there until
// the end) and CACHE_NODES (the host:port of each node, separated by commas).
type Hook struct {
	// name of the hook, unique in the list. The name of its Job is made from it
	// and from the cache's uid. "all" is no name: it stands for every hook.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'all'",message="all stands for every hook: choose another name"
	Name string `json:"name"`

	// image to run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// command in place of the image's entrypoint.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// args of the command.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// env of the container. A name given twice, or one of those that hooks see
	// anyway, has the value given last.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom takes variables from ConfigMaps and Secrets.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// serviceAccountName is who the hook is to the API server, whose token it
	// then gets. Without it the hook gets no token.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// perNode runs the hook once for each node, with the node's host:port in
	// CACHE_NODE.
	// +optional
	PerNode bool `json:"perNode,omitempty"`

	// attempts that the hook has; with perNode, for each node.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// timeoutSeconds is the time for all attempts (and nodes) together, pulling
	// the image included.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}
