package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "cache.example.com", Version: "v1"}

// SchemeGroupVersion is GroupVersion, under the name that generated code uses.
var SchemeGroupVersion = GroupVersion

// SchemeBuilder collects the types of this package. AddToScheme adds them to a scheme.
var (
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	AddToScheme   = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ClusteredCache{}, &ClusteredCacheList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
