package observe

import "k8s.io/apimachinery/pkg/labels"

// Scope says which caches a pass is about.
type Scope struct {
	// Namespaces to look in; empty: all of them.
	Namespaces []string
	// Names, if any, are the caches to look at, in the one namespace of
	// Namespaces; Selector is then not used.
	Names []string
	// Selector keeps the caches whose labels it matches; nil: all.
	Selector labels.Selector
}
