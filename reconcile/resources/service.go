package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// portName is the name of the cache's port in pods and Services.
const portName = "cache"

// ClientService returns the Service that clients use. It leads only to ready nodes.
// It is headless if clients choose the node of a key themselves. Behind one shared
// address, a request would reach any of the independent nodes.
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

// NodesService returns the governing Service of the StatefulSet, which gives every
// node its own name. A node has its name even before it is ready, so that nodes can
// find each other while they start.
func NodesService(cache *v1.ClusteredCache) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(NodesServiceName(cache.Name), cache.Namespace).
		WithLabels(serviceLabels(cache, v1.ComponentNodes)).
		WithOwnerReferences(ownedBy(cache)...).
		WithSpec(serviceSpec(cache).
			WithClusterIP(corev1.ClusterIPNone).
			WithPublishNotReadyAddresses(true))
}

// serviceSpec returns what both Services have in common. The target port is a number,
// because podTemplate may give container ports any name. Name and protocol are always
// sent. The protocol is part of the server's key for a port, and the name is required
// as soon as someone adds a port.
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
