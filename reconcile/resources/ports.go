package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// completePorts gives the cache's own container the port that its Services lead to.
// It runs after the overlay, because the number alone identifies a port for
// strategic merge. An overlay's UDP port with the same number would change our port
// to UDP. The overlay may give our port another name.
func completePorts(own *corev1ac.ContainerApplyConfiguration, port int32) error {
	isOwn := func(p corev1ac.ContainerPortApplyConfiguration) bool {
		return p.ContainerPort != nil && *p.ContainerPort == port &&
			(p.Protocol == nil || *p.Protocol == "" || *p.Protocol == corev1.ProtocolTCP)
	}
	isNamed := func(p corev1ac.ContainerPortApplyConfiguration) bool {
		return p.Name != nil && *p.Name == portName
	}
	i := slices.IndexFunc(own.Ports, isOwn)
	if i < 0 {
		own.Ports = slices.Insert(own.Ports, 0, *corev1ac.ContainerPort().
			WithContainerPort(port).
			WithProtocol(corev1.ProtocolTCP))
		i = 0
	}
	if own.Ports[i].Name != nil {
		return nil
	}
	if slices.ContainsFunc(own.Ports, isNamed) {
		return &OverlayError{
			Path:    "spec.containers[" + v1.ContainerName + "].ports",
			Message: "the port name " + portName + " belongs to the cache's own port: choose another name",
		}
	}
	own.Ports[i].WithName(portName)
	return nil
}

// defaultProtocols sets the protocol of every port that has none. The protocol is
// part of the server's key for a port, and we never leave a key to a default.
func defaultProtocols(containers []corev1ac.ContainerApplyConfiguration) {
	for c := range containers {
		for p := range containers[c].Ports {
			if port := &containers[c].Ports[p]; port.Protocol == nil || *port.Protocol == "" {
				port.WithProtocol(corev1.ProtocolTCP)
			}
		}
	}
}
