// Package observe is the only reader of a pass. It turns the pages of the API
// server's lists into one model.Input for each cache.
//
// Lists come in the order of their keys, "namespace/name" compared byte by byte. So
// caches and each kind of child are joined as streams:
//
//	caches        a ──── b ──── c ────
//	StatefulSets  a ──── b ───────────      memory: two pages of each,
//	Services      a ──────────── c ────     whatever the size of the fleet
//	...
//
// While one page is worked on, the next page of each stream is on its way. So a
// child may be newer or older than its cache. Package apply therefore confirms the
// cache first, and binds each write to the child that was seen.
package observe
