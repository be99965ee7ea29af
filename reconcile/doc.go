// Package reconcile makes a pass: it walks the fleet once and brings every
// cache one step closer to its spec.
//
//	observe ──► plan ──► apply ──► status ──► report
//	 reads      pure    writes     pure,      pure
//	                               one write
//
// A pass keeps no state: all that it knows it has read in this pass, and a
// pass that is killed anywhere is made good by the next. One bad cache never
// spoils the pass. Whether writes are real is decided by the client that is
// handed in (a dry-run client makes the same calls), nowhere below.
//
// The rights that a pass needs are the rbac markers below; deploy/rbac is made
// from them. Apply is the verb patch, and create where an object may be missing.
// Pods, claims and StorageClasses are read, and pods deleted, only for caches
// that have not settled.
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
