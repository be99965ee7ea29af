// Package health says how pods, Jobs and StatefulSets stand, in words that stay
// the same while nothing changes. It knows no cache.
//
// CauseOf is the one reader of pod trouble. It serves the nodes of a cache and
// the pods of its hooks (JobTrouble). Each reason is a constant of package v1.
package health
