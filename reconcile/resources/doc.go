// Package resources maps a ClusteredCache to the server-side apply configurations
// of its children: what the cache should be in the cluster.
//
//	ClusteredCache c ──┬─ StatefulSet c          the nodes c-0, c-1, ...
//	                   ├─ Service c              for clients
//	                   ├─ Service nodes-c        stable names of the nodes
//	                   └─ PodDisruptionBudget c  when there is more than one node
//
// Every function here is pure. It reads and writes no cluster, clock or log, and
// equal arguments give equal results. A nil result means that the object should not
// exist. A result has only fields that the reconciler wants to own: no zero values,
// no status, nothing that the server sets. It shares no memory with the arguments,
// and the caller must not change it.
//
// The package accepts every spec. Package plan decides whether a pass may act on
// the spec (names, suspension, a missing ConfigMap, immutable fields).
package resources
