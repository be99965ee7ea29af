package v1

// Names that objects in the cluster carry because of us. They are part of the API:
// a program that changed one would not find what an earlier version wrote.
const (
	// Kind is the kind of the only resource in this group.
	Kind = "ClusteredCache"

	// Finalizer keeps a ClusteredCache until a pass removes it.
	Finalizer = "cache.example.com/finalizer"

	// FieldManager is the only server-side apply manager of every pass, whoever
	// starts it. A pass could never remove fields owned under another name.
	FieldManager = "clusteredcache"

	// AdoptByAnnotation on an object without a controller names a cache. It lets
	// this cache take the object over.
	AdoptByAnnotation = "cache.example.com/adopt-by"

	// DrainingSinceAnnotation on a cache that is being deleted is the time when the
	// Service of its clients was deleted (RFC 3339).
	DrainingSinceAnnotation = "cache.example.com/draining-since"

	// SkipHooksAnnotation on a cache names the hooks that its deletion skips: names,
	// separated by commas, or SkipAllHooks.
	SkipHooksAnnotation = "cache.example.com/skip-hooks"
	SkipAllHooks        = "all"

	// ConfigHashAnnotation on the pod template is the hash of the content of the
	// ConfigMap. So new content makes a new revision.
	ConfigHashAnnotation = "cache.example.com/config-hash"
)

// Labels of every child. NameLabel and InstanceLabel, with their values, are also
// the selector of the StatefulSet. They never change while the cache exists.
const (
	NameLabel      = "app.kubernetes.io/name"
	InstanceLabel  = "app.kubernetes.io/instance"
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ComponentLabel = "app.kubernetes.io/component"

	// ManagedByValue is the value of ManagedByLabel on every child. A pass lists
	// the children by it.
	ManagedByValue = "clusteredcache"
	// NameValue is the value of NameLabel on every child and pod.
	NameValue = "clusteredcache"

	// ComponentClient and ComponentNodes are the values of ComponentLabel on the
	// two Services of a cache.
	ComponentClient = "client"
	ComponentNodes  = "nodes"

	// ComponentHook is the value of ComponentLabel on the Job and the pods of a hook.
	ComponentHook = "hook"
	// HookNameValue is the value of NameLabel on the pods of a hook. It differs from
	// that of the nodes, so the selectors of the nodes do not find these pods.
	HookNameValue = "clusteredcache-hook"
	// HookLabel on the Job and the pods of a hook is the name of the hook.
	HookLabel = "cache.example.com/hook"
)

// ContainerName is the name of the cache server's container in the pods of a cache.
// HookContainerName is that of the container of a hook. ClaimName is the name of the
// claim template.
const (
	ContainerName     = "cache"
	HookContainerName = "hook"
	ClaimName         = "data"
)

// NodesServicePrefix makes the name of the governing Service of cache c: "nodes-c".
// It is a prefix, so Services that are listed by name come in the order of their
// caches.
const NodesServicePrefix = "nodes-"
