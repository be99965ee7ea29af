package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	v1 "example.com/clusteredcache/api/v1"
)

// Scheme returns a new scheme with the groups of the kinds that we use.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme,
		appsv1.AddToScheme,
		batchv1.AddToScheme,
		policyv1.AddToScheme,
		storagev1.AddToScheme,
		eventsv1.AddToScheme,
		v1.AddToScheme,
	} {
		// It fails only if two types use the same kind, which would be a bug.
		utilruntime.Must(add(s))
	}
	return s
}

// kinds are all the kinds that a pass reads or writes, with the names of their
// resources. All but two are namespaced.
var kinds = []struct {
	gv               schema.GroupVersion
	kind             string
	plural, singular string
}{
	{v1.GroupVersion, v1.Kind, "clusteredcaches", "clusteredcache"},
	{appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets", "statefulset"},
	{corev1.SchemeGroupVersion, "Service", "services", "service"},
	{corev1.SchemeGroupVersion, "ConfigMap", "configmaps", "configmap"},
	{corev1.SchemeGroupVersion, "Namespace", "namespaces", "namespace"},
	{corev1.SchemeGroupVersion, "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"},
	{corev1.SchemeGroupVersion, "Pod", "pods", "pod"},
	{batchv1.SchemeGroupVersion, "Job", "jobs", "job"},
	{storagev1.SchemeGroupVersion, storageClass, "storageclasses", "storageclass"},
	{eventsv1.SchemeGroupVersion, "Event", "events", "event"},
	{policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"},
}

const storageClass = "StorageClass"

// Mapper returns a mapper that knows the kinds we use and never asks the server.
// Discovery would cost a request for each API group at every start. It would also
// fail a run because of an unrelated aggregated API.
func Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds {
		scope := meta.RESTScopeNamespace
		if k.kind == "Namespace" || k.kind == storageClass {
			scope = meta.RESTScopeRoot
		}
		m.AddSpecific(k.gv.WithKind(k.kind), k.gv.WithResource(k.plural), k.gv.WithResource(k.singular), scope)
	}
	return m
}
