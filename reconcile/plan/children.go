package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/resources"
)

// child is one object that a cache should have, or should no longer have.
type child struct {
	ref      Ref
	intent   runtime.ApplyConfiguration // nil: should not exist
	live     fields.Object              // nil: does not exist
	err      error                      // the intent cannot be built
	unwanted string                     // why it should not exist
	wanted   int32                      // nodes of a StatefulSet
}

// childrenOf lists the children in the order in which they are written: what
// the nodes need to find each other before the nodes themselves.
func childrenOf(in Input) ([]child, []Hold) {
	cache, holds := holdBackStorage(in)
	name := cache.Name
	at := func(kind, name string) Ref { return Ref{Kind: kind, Namespace: cache.Namespace, Name: name} }

	nodes := child{ref: at("Service", resources.NodesServiceName(name)), intent: resources.NodesService(cache)}
	sts := child{ref: at("StatefulSet", name), wanted: cache.Spec.Size}
	if s, err := resources.StatefulSet(cache, in.Config.Hash); err != nil {
		sts.err = err
	} else {
		sts.intent = s
	}
	client := child{ref: at("Service", name), intent: resources.ClientService(cache)}
	pdb := child{ref: at("PodDisruptionBudget", name), unwanted: "not needed for a single node"}
	if b := resources.DisruptionBudget(cache); b != nil {
		pdb.intent = b
	}

	if l := in.Live.NodesService; l != nil {
		nodes.live = l
	}
	if l := in.Live.StatefulSet; l != nil {
		sts.live = l
	}
	if l := in.Live.ClientService; l != nil {
		client.live = l
	}
	if l := in.Live.DisruptionBudget; l != nil {
		pdb.live = l
	}
	return []child{nodes, sts, client, pdb}, holds
}

func cacheRef(c *v1.ClusteredCache) Ref {
	return Ref{Kind: v1.Kind, Namespace: c.Namespace, Name: c.Name}
}

func isControlledBy(o fields.Object, cache *v1.ClusteredCache) bool {
	return metav1.IsControlledBy(o, cache)
}

// formerOwner is the object's controller when that is a cache of the same name
// that no longer exists: names are unique, so another uid is a former life.
func formerOwner(o fields.Object, cache *v1.ClusteredCache) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(o)
	if ref == nil || ref.UID == cache.UID || ref.Kind != v1.Kind || ref.Name != cache.Name {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != v1.GroupVersion.Group {
		return nil
	}
	return ref
}

// Owned keeps of the live objects those that this cache controls.
func (l Live) Owned(cache *v1.ClusteredCache) Live {
	var own Live
	if l.StatefulSet != nil && isControlledBy(l.StatefulSet, cache) {
		own.StatefulSet = l.StatefulSet
	}
	if l.ClientService != nil && isControlledBy(l.ClientService, cache) {
		own.ClientService = l.ClientService
	}
	if l.NodesService != nil && isControlledBy(l.NodesService, cache) {
		own.NodesService = l.NodesService
	}
	if l.DisruptionBudget != nil && isControlledBy(l.DisruptionBudget, cache) {
		own.DisruptionBudget = l.DisruptionBudget
	}
	return own
}
