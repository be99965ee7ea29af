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
)

// ContainerName is the name of the cache's own container in its pods, and
// ClaimName the name of its claim template.
const (
	ContainerName = "cache"
	ClaimName     = "data"
)

// NodesServicePrefix makes the name of the governing Service of cache c:
// "nodes-c". It is a prefix so that Services listed in name order come in the
// order of their caches.
const NodesServicePrefix = "nodes-"
