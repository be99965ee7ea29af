package v1

// Names that objects in the cluster carry on our behalf. They are part of the
// API: a release that changed one would lose sight of what an earlier release
// wrote.
const (
	// Kind is the kind of the one resource in this group.
	Kind = "ClusteredCache"

	// Finalizer keeps a ClusteredCache until a pass has let go of it.
	Finalizer = "cache.example.com/finalizer"

	// FieldManager is the one server-side apply manager of every pass,
	// whoever starts it. Fields owned under another name could never be
	// removed by us again.
	FieldManager = "clusteredcache"

	// AdoptByAnnotation on an object that nobody controls lets the cache named
	// by its value take the object over.
	AdoptByAnnotation = "cache.example.com/adopt-by"

	// DrainingSinceAnnotation on a cache that is being deleted is when its
	// clients' Service was gone (RFC 3339).
	DrainingSinceAnnotation = "cache.example.com/draining-since"

	// SkipHooksAnnotation on a cache names the hooks that its deletion goes on
	// without: names, separated by commas, or SkipAllHooks.
	SkipHooksAnnotation = "cache.example.com/skip-hooks"
	SkipAllHooks        = "all"

	// ConfigHashAnnotation on the pod template holds the hash of the content
	// of the referenced ConfigMap, so that new content is a new revision.
	ConfigHashAnnotation = "cache.example.com/config-hash"
)

// Labels of every child. NameLabel and InstanceLabel with their values are
// also the selector of the StatefulSet and never change in a cache's life.
const (
	NameLabel      = "app.kubernetes.io/name"
	InstanceLabel  = "app.kubernetes.io/instance"
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ComponentLabel = "app.kubernetes.io/component"

	// ManagedByValue is the value of ManagedByLabel on every child; children
	// are listed by it.
	ManagedByValue = "clusteredcache"
	// NameValue is the value of NameLabel on every child and pod.
	NameValue = "clusteredcache"

	// ComponentClient and ComponentNodes are the values of ComponentLabel
	// that tell a cache's two Services apart.
	ComponentClient = "client"
	ComponentNodes  = "nodes"

	// ComponentHook is the value of ComponentLabel on a hook's Job and pods.
	ComponentHook = "hook"
	// HookNameValue is the value of NameLabel on a hook's pods: another than
	// that of the nodes, whose selectors must not find them.
	HookNameValue = "clusteredcache-hook"
	// HookLabel on a hook's Job and pods is the name of the hook.
	HookLabel = "cache.example.com/hook"
)

// ContainerName is the name of the cache's own container in its pods,
// HookContainerName that of a hook's, and ClaimName the name of its claim
// template.
const (
	ContainerName     = "cache"
	HookContainerName = "hook"
	ClaimName         = "data"
)

// NodesServicePrefix makes the name of the governing Service of cache c:
// "nodes-c". It is a prefix so that Services listed in name order come in the
// order of their caches.
const NodesServicePrefix = "nodes-"
