package resources

import (
	v1 "example.com/clusteredcache/api/v1"
)

// profile is what distinguishes one engine from another. A new engine is a
// new row in profiles.
type profile struct {
	// image is the repository, without tag, where spec.image names none.
	image string
	// port is where nodes listen where spec.port names none.
	port int32
	// user is the id that nodes run as, user and group.
	user int64
	// readOnlyRoot: the engine writes nothing to its container's file system.
	readOnlyRoot bool
	// headless: clients choose the node of a key themselves and need every
	// node's address, not one address for all.
	headless bool
	// args are the container's arguments on the given port.
	args func(spec *v1.ClusteredCacheSpec, port int32) []string
}

var profiles = map[v1.Engine]profile{
	v1.EngineMemcached: {
		image:        "docker.io/library/memcached",
		port:         11211,
		user:         11211, // of the image: user memcache
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

// profileOf is the profile of the cache's engine. A cache that did not pass
// through a server has no default filled in and is Memcached. An engine that
// this release does not know is taken as Custom, which assumes the least.
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
