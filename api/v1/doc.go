// Package v1 is the API of group cache.example.com: the ClusteredCache type, and
// the names that it brings to objects in a cluster (labels, annotations, the
// finalizer, the field manager, condition reasons).
//
// The package has data, and the rules that a server enforces on it. Nothing in it
// talks to a cluster. make generate makes the CustomResourceDefinition under
// deploy/crd, the deep copies and the apply configurations from it.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=applyconfiguration
// +groupName=cache.example.com
package v1
