package main

import (
	"strings"

	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/observe"
)

// scope is which caches the flags mean on target: names, else namespaces and
// labels; without either all namespaces in a pod, and the context's at a
// kubeconfig, as with kubectl.
func (o *passFlags) scope(target *kube.Target) observe.Scope {
	s := observe.Scope{Namespaces: o.namespaces, Names: o.names, Selector: o.selector, Shard: o.shard}
	switch {
	case o.allNamespaces:
		s.Namespaces = nil
	case len(s.Namespaces) > 0:
	case len(s.Names) == 0 && target.InCluster:
	default:
		s.Namespaces = []string{target.Namespace}
	}
	return s
}

// defaultNamespace is that of manifests that name none.
func (o *passFlags) defaultNamespace(target *kube.Target) string {
	if len(o.namespaces) > 0 {
		return o.namespaces[0]
	}
	return target.Namespace
}

// where says in words which part of the cluster s is about.
func where(s observe.Scope) string {
	if s.Shard.Count > 0 {
		whole := s
		whole.Shard = observe.Shard{}
		return "shard " + s.Shard.String() + " of " + where(whole)
	}
	switch len(s.Namespaces) {
	case 0:
		return "all namespaces"
	case 1:
		return "namespace " + s.Namespaces[0]
	default:
		return "namespaces " + strings.Join(s.Namespaces, ", ")
	}
}

// firstWords say which cluster a run is about.
func firstWords(target *kube.Target) string {
	return "clusteredcache " + version + ": " + target.String() + ", "
}

// firstLine says what a run is about, before it does anything.
func firstLine(target *kube.Target, s observe.Scope) string {
	line := firstWords(target) + where(s)
	if len(s.Names) > 0 {
		line += ", only " + strings.Join(s.Names, ", ")
	}
	if s.Selector != nil {
		line += ", labels " + s.Selector.String()
	}
	return line
}
