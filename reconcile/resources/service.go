package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// portName is the name of the cache's port in pods and Services.
const portName = "cache"

// ClientService is the Service that clients use; it answers with ready nodes
// only. Headless where clients pick the node of a key themselves: behind one
// address, independent nodes would answer from whichever node comes next.
func ClientService(cache *v1.ClusteredCache) *corev1ac.ServiceApplyConfiguration {
	spec := serviceSpec(cache)
	if profileOf(cache).headless {
		spec.WithClusterIP(corev1.ClusterIPNone)
	} else {
		spec.WithType(corev1.ServiceTypeClusterIP)
	}
	return corev1ac.Service(cache.Name, cache.Namespace).
		WithLabels(serviceLabels(cache, v1.ComponentClient)).
		WithOwnerReferences(ownedBy(cache)...).
		WithSpec(spec)
}

// NodesService is the governing Service of the StatefulSet: it gives every
// node a name of its own, before it is ready too, so that nodes can find each
// other while they start.
func NodesService(cache *v1.ClusteredCache) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(NodesServiceName(cache.Name), cache.Namespace).
		WithLabels(serviceLabels(cache, v1.ComponentNodes)).
		WithOwnerReferences(ownedBy(cache)...).
		WithSpec(serviceSpec(cache).
			WithClusterIP(corev1.ClusterIPNone).
			WithPublishNotReadyAddresses(true))
}

// serviceSpec is what both Services have in common. The target is a number,
// since podTemplate may name container ports as it likes. Name and protocol
// are always sent: the protocol is part of the key under which the server
// tells ports apart, and the name is required as soon as someone adds a port.
func serviceSpec(cache *v1.ClusteredCache) *corev1ac.ServiceSpecApplyConfiguration {
	port := Port(cache)
	return corev1ac.ServiceSpec().
		WithSelector(SelectorLabels(cache.Name)).
		WithPorts(corev1ac.ServicePort().
			WithName(portName).
			WithPort(port).
			WithTargetPort(intstr.FromInt32(port)).
			WithProtocol(corev1.ProtocolTCP))
}
