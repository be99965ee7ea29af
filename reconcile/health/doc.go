// Package health describes the state of pods, Jobs and StatefulSets, in words that
// stay the same while nothing changes. It knows nothing about caches.
//
// CauseOf is the only reader of pod trouble. It serves the nodes of a cache and
// the pods of its hooks (JobTrouble). Each reason is a constant of package v1.
package health
