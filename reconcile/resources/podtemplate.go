package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// configVolume is the name of the volume that shows the ConfigMap.
const configVolume = "config"

// Where nodes find their volumes.
const (
	storagePath = "/data"
	configPath  = "/etc/cache"
)

// podTemplate returns the template of the nodes, with spec.podTemplate merged in. It
// leaves out labels and annotations of the cache, because a change there would
// restart every node.
func podTemplate(cache *v1.ClusteredCache, configHash string) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	own := corev1ac.PodTemplateSpec().
		WithLabels(SelectorLabels(cache.Name)).
		WithSpec(podSpec(cache))
	if cache.Spec.Config != nil && configHash != "" {
		own.WithAnnotations(map[string]string{v1.ConfigHashAnnotation: configHash})
	}
	template := own
	if overlay := cache.Spec.PodTemplate; overlay != nil && len(overlay.Raw) > 0 {
		merged, err := mergeOverlay(own, overlay.Raw)
		if err != nil {
			return nil, err
		}
		template = merged
	}
	if err := completePorts(&template.Spec.Containers[0], Port(cache)); err != nil {
		return nil, err
	}
	defaultProtocols(template.Spec.InitContainers)
	defaultProtocols(template.Spec.Containers)
	return template, nil
}

func podSpec(cache *v1.ClusteredCache) *corev1ac.PodSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		// Nodes never call the API server.
		WithAutomountServiceAccountToken(false).
		// Variables for every Service of the namespace would differ between nodes that
		// started at different times.
		WithEnableServiceLinks(false).
		WithSecurityContext(podSecurity(cache)).
		WithTopologySpreadConstraints(
			spreadOver(cache, corev1.LabelHostname),
			spreadOver(cache, corev1.LabelTopologyZone)).
		WithContainers(container(cache))
	if config := cache.Spec.Config; config != nil {
		spec.WithVolumes(corev1ac.Volume().
			WithName(configVolume).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(config.Name)))
	}
	return spec
}

// podSecurity returns the security context of a pod. With containerSecurity it
// satisfies the restricted Pod Security profile.
func podSecurity(cache *v1.ClusteredCache) *corev1ac.PodSecurityContextApplyConfiguration {
	user := profileOf(cache).user
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithRunAsUser(user).
		WithRunAsGroup(user).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if cache.Spec.Storage != nil {
		// A new volume belongs to root.
		security.WithFSGroup(user)
	}
	return security
}

// spreadOver returns the constraint that spreads the nodes evenly over the values of
// a machine label, if possible. A full zone must not prevent a node from running.
func spreadOver(cache *v1.ClusteredCache, machineLabel string) *corev1ac.TopologySpreadConstraintApplyConfiguration {
	return corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(machineLabel).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(selectPods(cache))
}

// container returns the cache's own container without its port, which completePorts
// adds after the overlay.
func container(cache *v1.ClusteredCache) *corev1ac.ContainerApplyConfiguration {
	profile := profileOf(cache)
	c := corev1ac.Container().
		WithName(v1.ContainerName).
		WithImage(Image(cache)).
		WithArgs(profile.args(&cache.Spec, Port(cache))...).
		WithReadinessProbe(connectProbe(cache).
			WithPeriodSeconds(5).
			WithTimeoutSeconds(3).
			WithFailureThreshold(3)).
		// A restart loses every key of the node. So it comes only when the node has
		// been unreachable for two minutes.
		WithLivenessProbe(connectProbe(cache).
			WithInitialDelaySeconds(30).
			WithPeriodSeconds(20).
			WithTimeoutSeconds(10).
			WithFailureThreshold(6)).
		WithSecurityContext(containerSecurity(profile))
	if resources := containerResources(&cache.Spec.Resources); resources != nil {
		c.WithResources(resources)
	}
	if cache.Spec.Storage != nil {
		c.WithVolumeMounts(corev1ac.VolumeMount().
			WithName(v1.ClaimName).
			WithMountPath(storagePath))
	}
	if cache.Spec.Config != nil {
		c.WithVolumeMounts(corev1ac.VolumeMount().
			WithName(configVolume).
			WithMountPath(configPath).
			WithReadOnly(true))
	}
	return c
}

// connectProbe returns a probe that checks whether the node accepts connections.
// Nothing else is common to all engines.
func connectProbe(cache *v1.ClusteredCache) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromInt32(Port(cache))))
}

func containerSecurity(profile profile) *corev1ac.SecurityContextApplyConfiguration {
	security := corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
	if profile.readOnlyRoot {
		security.WithReadOnlyRootFilesystem(true)
	}
	return security
}

// containerResources returns the resources of a container, or nil if the spec asks
// for nothing.
func containerResources(spec *corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	if len(spec.Limits) == 0 && len(spec.Requests) == 0 && len(spec.Claims) == 0 {
		return nil
	}
	resources := corev1ac.ResourceRequirements()
	if len(spec.Limits) > 0 {
		resources.WithLimits(spec.Limits.DeepCopy())
	}
	if len(spec.Requests) > 0 {
		resources.WithRequests(spec.Requests.DeepCopy())
	}
	for _, claim := range spec.Claims {
		reference := corev1ac.ResourceClaim().WithName(claim.Name)
		if claim.Request != "" {
			reference.WithRequest(claim.Request)
		}
		resources.WithClaims(reference)
	}
	return resources
}
