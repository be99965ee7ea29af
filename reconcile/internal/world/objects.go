package world

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
)

// Get reads an object of the namespace into o, and returns it.
func Get[T client.Object](w *World, name string, o T) T {
	w.Helper()
	// Not the test's context: cleanups read too.
	if err := w.Env.Client.Get(forCleanup(), client.ObjectKey{Namespace: w.NS, Name: name}, o); err != nil {
		w.Fatal(err)
	}
	return o
}

// Read reads an object anew.
func (w *World) Read(o client.Object) {
	w.Helper()
	if err := w.Env.Client.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.Fatal(err)
	}
}

// List reads the objects of the namespace into list.
func (w *World) List(list client.ObjectList, opts ...client.ListOption) {
	w.Helper()
	if err := w.Env.Client.List(w.Context(), list, append(opts, client.InNamespace(w.NS))...); err != nil {
		w.Fatal(err)
	}
}

// Object is one of the namespace, with its kind and name only.
func (w *World) Object(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(w.NS)
	o.SetName(name)
	return o
}

// StatefulSet is that of the cache.
func (w *World) StatefulSet() *appsv1.StatefulSet {
	w.Helper()
	return Get(w, w.Name, &appsv1.StatefulSet{})
}

// ClientService is the Service that clients of the cache use.
func (w *World) ClientService() *corev1.Service {
	w.Helper()
	return Get(w, w.Name, &corev1.Service{})
}

// NodesService is the Service that gives the nodes their names.
func (w *World) NodesService() *corev1.Service {
	w.Helper()
	return Get(w, "nodes-"+w.Name, &corev1.Service{})
}

// Budget is the PodDisruptionBudget of the cache.
func (w *World) Budget() *policyv1.PodDisruptionBudget {
	w.Helper()
	return Get(w, w.Name, &policyv1.PodDisruptionBudget{})
}

// Node is the pod of a node of the cache.
func (w *World) Node(ordinal int) *corev1.Pod {
	w.Helper()
	return Get(w, fmt.Sprintf("%s-%d", w.Name, ordinal), &corev1.Pod{})
}

// Nodes are the uids of all pods by name.
func (w *World) Nodes() map[string]types.UID {
	w.Helper()
	list := &corev1.PodList{}
	w.List(list)
	uids := map[string]types.UID{}
	for _, p := range list.Items {
		uids[p.Name] = p.UID
	}
	return uids
}

// Create creates an object, in the namespace that it names itself.
func (w *World) Create(o client.Object, opts ...client.CreateOption) {
	w.Helper()
	if err := w.Env.Client.Create(w.Context(), o, opts...); err != nil {
		w.Fatal(err)
	}
}

// CreateGlobal creates an object that belongs to no namespace, until the test ends.
func (w *World) CreateGlobal(o client.Object) {
	w.Helper()
	w.Create(o)
	w.Cleanup(func() { _ = w.Env.Client.Delete(forCleanup(), o) })
}

// CreateYAML creates the objects of documents that belong to no namespace.
func (w *World) CreateYAML(documents string) []client.Object {
	w.Helper()
	var objects []client.Object
	for document := range strings.SplitSeq(documents, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &u.Object); err != nil {
			w.Fatal(err)
		}
		w.CreateGlobal(u)
		objects = append(objects, u)
	}
	return objects
}

// Patch changes an object by a merge patch.
func (w *World) Patch(o client.Object, merge string, opts ...client.PatchOption) {
	w.Helper()
	w.patch(o, types.MergePatchType, merge, opts...)
}

// PatchJSON changes an object the way kubectl patch --type=json does.
func (w *World) PatchJSON(o client.Object, operations, manager string) {
	w.Helper()
	w.patch(o, types.JSONPatchType, operations, client.FieldOwner(manager))
}

// Apply applies an object server-side.
func (w *World) Apply(o client.Object, applied, manager string, opts ...client.PatchOption) {
	w.Helper()
	w.patch(o, types.ApplyYAMLPatchType, applied, append(opts, client.FieldOwner(manager))...)
}

func (w *World) patch(o client.Object, kind types.PatchType, patch string, opts ...client.PatchOption) {
	w.Helper()
	if err := w.Env.Client.Patch(w.Context(), o, client.RawPatch(kind, []byte(patch)), opts...); err != nil {
		w.Fatal(err)
	}
}

// PatchStatus changes the status of an object by a merge patch.
func (w *World) PatchStatus(o client.Object, status string, opts ...client.SubResourcePatchOption) {
	w.Helper()
	merge := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
	if err := w.Env.Client.Status().Patch(w.Context(), o, merge, opts...); err != nil {
		w.Fatal(err)
	}
}

// Label puts a label on the namespace.
func (w *World) Label(key, value string) {
	w.Helper()
	ns := &corev1.Namespace{}
	ns.Name = w.NS
	w.Patch(ns, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value))
}

// Keep makes an object that keeps the namespace from being gone until the test ends.
func (w *World) Keep() {
	w.Helper()
	keep := &corev1.ConfigMap{ObjectMeta: w.Meta("keep")}
	keep.Finalizers = []string{"test.example.com/keep"}
	w.Create(keep)
	w.Cleanup(func() {
		_ = w.Env.Client.Patch(forCleanup(), keep, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
}

// DeleteNamespace deletes the namespace and does not wait for its end.
func (w *World) DeleteNamespace() {
	w.Helper()
	ns := &corev1.Namespace{}
	ns.Name = w.NS
	w.Delete(ns)
}

// IsGone is whether there is no such object.
func (w *World) IsGone(name string, o client.Object) bool {
	w.Helper()
	return apierrors.IsNotFound(w.Env.Client.Get(w.Context(), client.ObjectKey{Namespace: w.NS, Name: name}, o))
}

// CacheIsGone is whether there is no such cache.
func (w *World) CacheIsGone() bool {
	w.Helper()
	return w.IsGone(w.Name, &v1.ClusteredCache{})
}

// Gone wants no objects of the cache's name, of these kinds.
func (w *World) Gone(kinds ...client.Object) {
	w.Helper()
	for _, o := range kinds {
		w.GoneNamed(w.Name, o)
	}
}

// GoneNamed wants no such object.
func (w *World) GoneNamed(name string, o client.Object) {
	w.Helper()
	if !w.IsGone(name, o) {
		w.Errorf("%T %s/%s should not exist", o, w.NS, name)
	}
}

// Collected waits until objects of the cache's name are gone.
func (w *World) Collected(kinds ...client.Object) {
	w.Helper()
	for _, o := range kinds {
		w.Eventually(fmt.Sprintf("%T %s is collected", o, w), func() bool { return w.IsGone(w.Name, o) })
	}
}

func (w *World) versionsIn(ns string) map[string]string {
	w.Helper()
	v := map[string]string{}
	for _, list := range []client.ObjectList{&v1.ClusteredCacheList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}} {
		if err := w.Env.Client.List(w.Context(), list, client.InNamespace(ns)); err != nil {
			w.Fatal(err)
		}
		err := apimeta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			v[fmt.Sprintf("%T %s/%s", o, ns, object.GetName())] = object.GetResourceVersion()
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	return v
}
