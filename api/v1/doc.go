// Package v1 is the API of group cache.example.com: the ClusteredCache type,
// and the names that cluster objects carry because of it (labels,
// annotations, the finalizer, the field manager, condition reasons).
//
// The package holds data and the rules a server enforces on it, nothing that
// talks to a cluster. The CustomResourceDefinition under deploy/crd, the deep
// copies and the apply configurations are generated from it (make generate).
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=applyconfiguration
// +groupName=cache.example.com
package v1
