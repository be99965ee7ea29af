package plan

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// Operation is one operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// clearWay makes way for an apply: server-side apply cannot remove a list item
// that somebody else owns, and the API server refuses a second controller, and
// a second port of one name.
func clearWay(in Input, c child) []Step {
	patch, why := formerController(c.live, in.Cache)
	switch live := c.live.(type) {
	case *corev1.Service:
		if ops := renumbered(live, c.intent.(*accorev1.ServiceApplyConfiguration)); ops != nil {
			patch, why = append(patch, ops...), "a port of ours has another number"
		}
	case *appsv1.StatefulSet:
		if ops := renumberedInPods(live, c.intent.(*acappsv1.StatefulSetApplyConfiguration)); ops != nil {
			patch, why = append(patch, ops...), "a port of ours has another number"
		}
	}
	if patch == nil {
		return nil
	}
	return []Step{{Action: ActionClear, Target: c.ref, Live: c.live, Patch: patch, Reason: why}}
}

func formerController(live Object, cache *v1.ClusteredCache) ([]Operation, string) {
	if formerOwner(live, cache) == nil {
		return nil, ""
	}
	left := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return r.Controller != nil && *r.Controller
	})
	return []Operation{{Op: "replace", Path: "/metadata/ownerReferences", Value: left}}, "taken over from a former cache of this name"
}

// port is what tells ports apart, of Services and containers alike.
type port struct {
	name     string
	number   int32
	protocol corev1.Protocol
}

func (p port) sameKey(q port) bool { return p.number == q.number && p.protocol == q.protocol }

func renumbered(live *corev1.Service, intent *accorev1.ServiceApplyConfiguration) []Operation {
	var have []port
	for _, p := range live.Spec.Ports {
		have = append(have, port{p.Name, p.Port, p.Protocol})
	}
	var ops []Operation
	for i := range intent.Spec.Ports {
		p := &intent.Spec.Ports[i]
		ops = append(ops, makeWay("/spec/ports", have, port{*p.Name, *p.Port, *p.Protocol}, p)...)
	}
	return ops
}

func renumberedInPods(live *appsv1.StatefulSet, intent *acappsv1.StatefulSetApplyConfiguration) []Operation {
	at := slices.IndexFunc(live.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == v1.ContainerName })
	if at < 0 {
		return nil
	}
	var have []port
	for _, p := range live.Spec.Template.Spec.Containers[at].Ports {
		have = append(have, port{p.Name, p.ContainerPort, p.Protocol})
	}
	var ops []Operation
	for _, c := range intent.Spec.Template.Spec.Containers {
		for i := range c.Ports {
			if p := &c.Ports[i]; *c.Name == v1.ContainerName && p.Name != nil {
				list := fmt.Sprintf("/spec/template/spec/containers/%d/ports", at)
				ops = append(ops, makeWay(list, have, port{*p.Name, *p.ContainerPort, *p.Protocol}, p)...)
			}
		}
	}
	return ops
}

// makeWay puts item, which is want, in the place of the port that has its name
// and another number; or removes that one, if want is there as well.
func makeWay(list string, have []port, want port, item any) []Operation {
	at := slices.IndexFunc(have, func(p port) bool { return p.name == want.name && !p.sameKey(want) })
	switch {
	case at < 0:
		return nil
	case slices.ContainsFunc(have, want.sameKey):
		return []Operation{{Op: "remove", Path: fmt.Sprintf("%s/%d", list, at)}}
	}
	return []Operation{{Op: "replace", Path: fmt.Sprintf("%s/%d", list, at), Value: item}}
}
