package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// child is one object that a cache should have, or should no longer have.
type child struct {
	ref      model.Ref
	intent   runtime.ApplyConfiguration // nil if the object should not exist
	live     fields.Object              // nil if the object does not exist
	err      error                      // why the intent cannot be built
	unwanted string                     // why the object should not exist
	wanted   int32                      // the number of nodes of a StatefulSet
}

// childrenOf returns the children in the order in which they are written. The
// nodes need the first Service to find each other, so it comes before the nodes.
func childrenOf(in model.Input) ([]child, []model.Hold) {
	cache, holds := holdBackStorage(in)
	name := cache.Name
	refTo := func(kind model.Kind, name string) model.Ref {
		return model.Ref{Kind: kind, Namespace: cache.Namespace, Name: name}
	}

	nodes := child{ref: refTo(model.KindService, resources.NodesServiceName(name)), intent: resources.NodesService(cache)}
	sts := child{ref: refTo(model.KindStatefulSet, name), wanted: cache.Spec.Size}
	if s, err := resources.StatefulSet(cache, in.Config.Hash); err != nil {
		sts.err = err
	} else {
		sts.intent = s
	}
	client := child{ref: refTo(model.KindService, name), intent: resources.ClientService(cache)}
	pdb := child{ref: refTo(model.KindDisruptionBudget, name), unwanted: "not needed for a single node"}
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

func cacheRef(c *v1.ClusteredCache) model.Ref { return refOf(model.KindCache, c) }

// refOf returns the reference to an object of this kind.
func refOf(kind model.Kind, o metav1.Object) model.Ref {
	return model.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// formerOwner returns the object's controller if it is a former cache of the same
// name. Names are unique, so a cache of this name with another uid is gone.
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
