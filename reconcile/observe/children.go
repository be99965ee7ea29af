package observe

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// children holds the streams of the children, which are joined to that of the
// caches.
type children struct {
	statefulSets *stream[*appsv1.StatefulSet]
	clients      *stream[*corev1.Service]
	nodes        *stream[*corev1.Service]
	budgets      *stream[*policyv1.PodDisruptionBudget]
}

// children returns the streams of the children in one namespace, or in all
// namespaces if ns is empty.
func (r *Reader) children(ns string) children {
	services := func(component string) *stream[*corev1.Service] {
		return childStream(r.client, listed{ns, component}, &corev1.ServiceList{},
			func(l *corev1.ServiceList) []*corev1.Service { return pointers(l.Items) })
	}
	return children{
		statefulSets: childStream(r.client, listed{ns, ""}, &appsv1.StatefulSetList{},
			func(l *appsv1.StatefulSetList) []*appsv1.StatefulSet { return pointers(l.Items) }),
		clients: services(v1.ComponentClient),
		nodes:   services(v1.ComponentNodes),
		budgets: childStream(r.client, listed{ns, ""}, &policyv1.PodDisruptionBudgetList{},
			func(l *policyv1.PodDisruptionBudgetList) []*policyv1.PodDisruptionBudget { return pointers(l.Items) }),
	}
}

// begin requests the first page of each stream, all at the same time.
func (c children) begin(ctx context.Context) {
	c.statefulSets.begin(ctx)
	c.clients.begin(ctx)
	c.nodes.begin(ctx)
	c.budgets.begin(ctx)
}

// stop waits for the pages that are still on their way. Their context must have
// ended.
func (c children) stop() {
	c.statefulSets.stop()
	c.clients.stop()
	c.nodes.stop()
	c.budgets.stop()
}

// of returns the children of the cache with this key.
func (c children) of(ctx context.Context, key string) (live model.Live, err error) {
	if live.StatefulSet, err = c.statefulSets.find(ctx, key); err != nil {
		return live, err
	}
	if live.ClientService, err = c.clients.find(ctx, key); err != nil {
		return live, err
	}
	if live.NodesService, err = c.nodes.find(ctx, key); err != nil {
		return live, err
	}
	live.DisruptionBudget, err = c.budgets.find(ctx, key)
	return live, err
}

// pointers copies the items out of their list. An object that a report keeps then
// does not keep the whole page in memory.
func pointers[T any](items []T) []*T {
	p := make([]*T, len(items))
	for i, item := range items {
		p[i] = &item
	}
	return p
}

// listed selects the objects of a kind that are children.
type listed struct {
	namespace string // empty means every namespace
	component string // for Services only
}

// protobufList is a list of a built-in kind. Size returns its size on the wire.
type protobufList interface {
	client.ObjectList
	Size() int
}

// childStream streams one kind of child.
func childStream[T client.Object, L protobufList](c client.Reader, of listed, list L, items func(L) []T) *stream[T] {
	match := client.MatchingLabels{v1.ManagedByLabel: v1.ManagedByValue}
	if of.component != "" {
		match[v1.ComponentLabel] = of.component
	}
	return newStream(fmt.Sprintf("%T", list), func(ctx context.Context, token string, limit int64) (page[T], error) {
		answer := list.DeepCopyObject().(L)
		err := c.List(ctx, answer, client.InNamespace(of.namespace), match, client.Continue(token), client.Limit(limit))
		if err != nil {
			return page[T]{}, err
		}
		objects := items(answer)
		p := page[T]{next: answer.GetContinue(), objects: len(objects), bytes: answer.Size()}
		for _, o := range objects {
			name, ok := o.GetName(), true
			if of.component == v1.ComponentNodes {
				name, ok = strings.CutPrefix(name, v1.NodesServicePrefix)
			}
			if ok {
				p.add(types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, o)
			}
		}
		return p, nil
	})
}
