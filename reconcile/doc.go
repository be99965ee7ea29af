// Package reconcile makes a pass. A pass visits every cache once and brings it one
// step closer to its spec.
//
//	observe ──► plan ──► apply ──► status ──► report
//	 reads      pure    writes     pure,      pure
//	                               one write
//
// A pass keeps no state. It knows only what it has read itself. If a pass is killed,
// the next one completes its work. A cache that fails does not affect the others.
// The client that the caller passes decides whether writes are real. A dry-run
// client makes the same calls.
//
// # Packages
//
// Each package imports only packages from the rows below its own. Packages of one
// row do not import each other.
//
//	cmd/clusteredcache                                flags, printing, exit statuses
//	reconcile                                         the story: passes, workers, waiting
//	observe manifest plan apply status report kube    the stages, and the way to the cluster
//	model                                             the values that travel: Input, Plan, Outcome
//	health                                            how pods, Jobs and StatefulSets stand
//	fields resources                                  who owns what; a cache to its children
//	api/v1                                            the types, and every name in a cluster
//
// These are all imports between the packages:
//
//	cmd/clusteredcache: reconcile kube manifest model observe report
//	reconcile:          api/v1 apply fields manifest model observe plan status
//	observe:            api/v1 health model resources
//	manifest:           api/v1 model resources
//	plan:               api/v1 fields health model resources
//	apply:              api/v1 fields model
//	status:             api/v1 health model resources
//	report:             api/v1 fields model
//	kube:               api/v1
//	model:              api/v1 fields health
//	health:             api/v1 fields
//	fields:             api/v1
//	resources:          api/v1
//
// The pure packages are api/v1, fields, health, resources, model, plan, status
// and report. They take no context, client, logger or clock. They never import a
// controller-runtime package, directly or indirectly.
//
// # Rights
//
// The rbac markers below are the rights that a pass needs. deploy/rbac is generated
// from them. An apply needs the verb patch, and also create where an object may be
// missing. A pass reads pods, claims and StorageClasses, and deletes pods, only for
// caches that have not settled.
//
// +kubebuilder:rbac:groups=cache.example.com,resources=clusteredcaches,verbs=get;list;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=clusteredcaches/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=clusteredcaches/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=list;create
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;create;patch
package reconcile
