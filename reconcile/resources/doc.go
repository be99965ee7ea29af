// Package resources says what a cache should look like in the cluster: it maps
// a ClusteredCache to the server-side apply configurations of its children.
//
//	ClusteredCache c ──┬─ StatefulSet c          the nodes c-0, c-1, ...
//	                   ├─ Service c              for clients
//	                   ├─ Service nodes-c        stable names of the nodes
//	                   └─ PodDisruptionBudget c  when there is more than one node
//
// Everything here is a pure function of its arguments: nothing is read from or
// written to a cluster, no clock, no log, and equal arguments give equal
// results. A nil result means that the object should not exist. A result
// holds only fields that the reconciler means to own: no zero values, no
// status, nothing the server fills in. It shares no memory with the
// arguments, and the caller must not change it.
//
// The package takes any spec as it is. Whether a spec may be acted on (names,
// suspension, a missing ConfigMap, immutable fields) is for package plan.
package resources
