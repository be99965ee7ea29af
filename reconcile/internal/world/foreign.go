package world

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// SomeService is a Service of somebody else's, which is not created yet.
func (w *World) SomeService(name string, owners ...metav1.OwnerReference) *corev1.Service {
	s := &corev1.Service{ObjectMeta: w.Meta(name)}
	s.OwnerReferences = owners
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.Selector = map[string]string{"app": "theirs"}
	s.Spec.Ports = []corev1.ServicePort{{Name: "theirs", Port: 80}}
	return s
}

// Adoptable lets the cache adopt an object.
func (w *World) Adoptable(o metav1.Object) {
	o.SetAnnotations(map[string]string{v1.AdoptByAnnotation: w.Name})
}

// SomeStatefulSet is one that somebody made by hand and lets the cache adopt. It
// is OrderedReady. Nothing but its name, selector and adoption fits.
func (w *World) SomeStatefulSet() *appsv1.StatefulSet {
	labels := map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: w.Name}
	s := &appsv1.StatefulSet{ObjectMeta: w.Meta(w.Name)}
	w.Adoptable(s)
	s.Spec.ServiceName, s.Spec.Replicas = "nodes-"+w.Name, new(int32(3))
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	s.Spec.Template.Labels = labels
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "cache", Image: "memcached:old"}}
	return s
}

// Probe is a StatefulSet to ask admission about.
func (w *World) Probe(image string) *appsv1.StatefulSet {
	probe := &appsv1.StatefulSet{ObjectMeta: w.Meta("probe")}
	probe.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "probe"}}
	probe.Spec.Template.Labels = probe.Spec.Selector.MatchLabels
	probe.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	return probe
}

// Quota lets no more than so many objects of a resource into the namespace. Its
// status is written here, since the quota controller does not run; admission goes
// by it.
func (w *World) Quota(what corev1.ResourceName, number string) *corev1.ResourceQuota {
	w.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: w.Meta("quota")}
	q.Spec.Hard = corev1.ResourceList{what: resource.MustParse(number)}
	w.Create(q)
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: q.Spec.Hard}
	if err := w.Env.Client.Status().Update(w.Context(), q); err != nil {
		w.Fatal(err)
	}
	return q
}

// PodReady is the status of a pod.
const PodReady = `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`

// PodWaiting is the status of a pod whose container waits.
func PodWaiting(reason string) string {
	return `{"phase":"Pending","containerStatuses":[{"name":"cache","image":"x","imageID":"","ready":false,"restartCount":0,"state":{"waiting":{"reason":"` + reason + `","message":"no"}}}]}`
}

// MakeNode makes a pod as the StatefulSet controller would.
func (w *World) MakeNode(ordinal int, revision, status string) {
	w.Helper()
	sts := w.StatefulSet()
	pod := &corev1.Pod{ObjectMeta: w.Meta(fmt.Sprintf("%s-%d", sts.Name, ordinal))}
	pod.Labels = map[string]string{v1.NameLabel: v1.NameValue, v1.InstanceLabel: sts.Name, appsv1.ControllerRevisionHashLabelKey: revision}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sts, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec = sts.Spec.Template.Spec
	w.Create(pod)
	w.PatchStatus(pod, status)
}

// MarkReady lets the control plane mark a node ready, or not.
func (w *World) MarkReady(ordinal int, ready bool) {
	w.Helper()
	w.Patch(w.Node(ordinal), fmt.Sprintf(`{"metadata":{"annotations":{"controlplane.test/ready":"%t"}}}`, ready))
}
