package observe

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/plan"
)

// children are the streams that are joined to the caches.
type children struct {
	statefulSets *stream[*appsv1.StatefulSet]
	clients      *stream[*corev1.Service]
	nodes        *stream[*corev1.Service]
	budgets      *stream[*policyv1.PodDisruptionBudget]
}

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

func (c children) of(ctx context.Context, key string) (live plan.Live, err error) {
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

func pointers[T any](items []T) []*T {
	p := make([]*T, len(items))
	for i := range items {
		p[i] = &items[i]
	}
	return p
}

// listed says which objects of a kind are children.
type listed struct {
	namespace string // "": all
	component string // of Services
}

// childStream streams one kind of child.
func childStream[T client.Object, L client.ObjectList](c client.Reader, of listed, list L, items func(L) []T) *stream[T] {
	match := client.MatchingLabels{v1.ManagedByLabel: v1.ManagedByValue}
	if of.component != "" {
		match[v1.ComponentLabel] = of.component
	}
	return &stream[T]{what: fmt.Sprintf("%T", list), page: func(ctx context.Context, token string) ([]entry[T], string, error) {
		page := list.DeepCopyObject().(L)
		next, err := listPage(ctx, c, page, client.InNamespace(of.namespace), match, client.Continue(token))
		if err != nil {
			return nil, "", err
		}
		var entries []entry[T]
		for _, o := range items(page) {
			name, ok := o.GetName(), true
			if of.component == v1.ComponentNodes {
				name, ok = strings.CutPrefix(name, v1.NodesServicePrefix)
			}
			if ok {
				entries = append(entries, entry[T]{key: o.GetNamespace() + "/" + name, object: o})
			}
		}
		return entries, next, nil
	}}
}
