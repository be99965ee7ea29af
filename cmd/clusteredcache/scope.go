package main

import (
	"strings"

	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/observe"
)

// scope returns the caches on target that the flags choose. Without names and
// namespaces it is all namespaces in a pod. With a kubeconfig it is then the
// context's namespace, as with kubectl.
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

// defaultNamespace returns the namespace for manifests that name none.
func (o *passFlags) defaultNamespace(target *kube.Target) string {
	if len(o.namespaces) > 0 {
		return o.namespaces[0]
	}
	return target.Namespace
}

// where describes the namespaces and the shard of s in words.
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

// firstWords begins the first line of a run with the program and the cluster.
func firstWords(target *kube.Target) string {
	return "clusteredcache " + version + ": " + target.String() + ", "
}

// firstLine describes the cluster and the scope of a run. It is printed before
// the run does anything.
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
