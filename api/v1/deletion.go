package v1

import corev1 "k8s.io/api/core/v1"

// OnFailure says what happens to a deletion when a hook fails.
// +kubebuilder:validation:Enum=Block;Continue
type OnFailure string

const (
	// OnFailureBlock keeps the cache until a person acts.
	OnFailureBlock OnFailure = "Block"
	// OnFailureContinue skips the hook.
	OnFailureContinue OnFailure = "Continue"
)

// DeletionSpec is the checklist of a deletion. First the Service of the clients is
// deleted. Then clients have time to leave, and the hooks run one after the other.
// At the end the cache and its children are deleted.
type DeletionSpec struct {
	// drainSeconds is how long clients have to leave before the first hook runs.
	// Without hooks, it is the time before the nodes are deleted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DrainSeconds int32 `json:"drainSeconds,omitempty"`

	// hooks run in this order. Each must succeed before the next begins.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(other, other.name == h.name))",message="every hook needs a name of its own"
	// +listType=atomic
	// +optional
	Hooks []Hook `json:"hooks,omitempty"`

	// onFailure says what happens when a hook has used up its attempts or its time.
	// Block keeps the cache, Continue skips the hook.
	// +kubebuilder:default=Block
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`
}

// Hook is a Job that runs in the namespace of the cache while the cache is being
// deleted. Its container sees CACHE_NAME, CACHE_NAMESPACE, CACHE_UID and
// CACHE_VERSION. CACHE_SERVICE is the Service of the nodes, which exists until the
// end. CACHE_NODES has the host:port of each node, separated by commas.
type Hook struct {
	// name is the name of the hook, unique in the list. The name of its Job is made
	// from it and from the uid of the cache. "all" is not allowed, because it stands
	// for every hook.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'all'",message="all stands for every hook: choose another name"
	Name string `json:"name"`

	// image is the image to run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// command replaces the entrypoint of the image.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// args are the arguments of the command.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// env sets variables of the container. If a name appears twice, the last value
	// applies. A name here also replaces a variable that every hook sees.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom sets variables from ConfigMaps and Secrets.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// resources are those of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// serviceAccountName is the identity of the hook at the API server. The hook
	// gets the token of this ServiceAccount. Without a name it gets no token.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// perNode runs the hook once for each node. CACHE_NODE has the host:port of the
	// node.
	// +optional
	PerNode bool `json:"perNode,omitempty"`

	// attempts is how often the hook may run. With perNode it counts for each node.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// timeoutSeconds is the time for all attempts, and for all nodes together. It
	// includes the time to pull the image.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}
