package resources

import (
	v1 "example.com/clusteredcache/api/v1"
)

// profile is what distinguishes one engine from another. A new engine is a
// new row in profiles.
type profile struct {
	// image is the repository, without tag, for a spec without image.
	image string
	// port is where nodes listen for a spec without port.
	port int32
	// user is the id of the user and the group that nodes run as.
	user int64
	// readOnlyRoot is set if the engine writes nothing to its container's file
	// system.
	readOnlyRoot bool
	// headless is set if clients choose the node of a key themselves. They then need
	// the address of every node, not one address for all.
	headless bool
	// args returns the container's arguments for this port.
	args func(spec *v1.ClusteredCacheSpec, port int32) []string
}

var profiles = map[v1.Engine]profile{
	v1.EngineMemcached: {
		image:        "docker.io/library/memcached",
		port:         11211,
		user:         11211, // the image has it as user memcache
		readOnlyRoot: true,
		headless:     true,
		args:         memcachedArgs,
	},
	v1.EngineCustom: {
		port: 8080,
		user: 65532, // "nonroot" in images without a distribution
		args: func(spec *v1.ClusteredCacheSpec, _ int32) []string { return spec.Args },
	},
}

// profileOf returns the profile of the cache's engine. An empty engine is Memcached:
// a cache that did not pass through a server has no defaults. An engine that this
// release does not know is treated as Custom, which assumes the least.
func profileOf(cache *v1.ClusteredCache) profile {
	engine := cache.Spec.Engine
	if engine == "" {
		engine = v1.EngineMemcached
	}
	if p, known := profiles[engine]; known {
		return p
	}
	return profiles[v1.EngineCustom]
}
