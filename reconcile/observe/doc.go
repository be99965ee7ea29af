// Package observe is the only reader of a pass: pages of the API server's
// lists go in, one model.Input a cache comes out.
//
// Lists come back in the order of their keys, "namespace/name" compared byte
// by byte, so caches and each kind of child are joined as streams:
//
//	caches        a ──── b ──── c ────
//	StatefulSets  a ──── b ───────────      memory: two pages of each,
//	Services      a ──────────── c ────     whatever the size of the fleet
//	...
//
// The next page of each is on its way while one is worked on. So a child may be
// newer or older than the cache that goes with it; whoever writes confirms the
// cache first, and binds the write to the child that was seen.
package observe
