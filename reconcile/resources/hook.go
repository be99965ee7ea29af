package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

const (
	// hookUser is the user that a hook's container runs as, whatever user its image
	// has. The kubelet cannot decide whether a user that an image names by a word is
	// root.
	hookUser int64 = 65532

	// completionIndex is the variable with the number of a pod of an Indexed Job.
	// The Job controller would add it after our variables, and ours could not refer
	// to it.
	completionIndex = "JOB_COMPLETION_INDEX"

	// maxJobName is the length of the longest name of a Job. The name is the value of
	// a label, and with a node's ordinal after it the host name of a pod. Both have
	// at most 63 characters. This leaves room for the ordinals of MaxSize nodes.
	maxJobName = 59
)

// HookJobName returns the name of the Job of a cache's hook. The name depends on the
// cache's uid, so a later cache of the same name has its own Jobs.
func HookJobName(cache *v1.ClusteredCache, hook string) string {
	sum := sha256.Sum256([]byte(string(cache.UID) + "/" + hook))
	suffix := "-" + hook + "-" + hex.EncodeToString(sum[:5])
	name := strings.ReplaceAll(cache.Name, ".", "-")
	name = name[:max(1, min(len(name), maxJobName-len(suffix)))]
	return strings.TrimRight(name, "-") + suffix
}

// HookJob returns the Job that runs a hook of a cache that is being deleted. nodes
// is the number of its nodes, 0 if they are already gone. The Job has no
// ttlSecondsAfterFinished, because a later pass reads its result.
func HookJob(cache *v1.ClusteredCache, hook *v1.Hook, nodes int32) (*batchv1ac.JobApplyConfiguration, error) {
	env, err := hookEnv(cache, hook, nodes)
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", hook.Name, err)
	}
	envFrom, err := applied[[]*corev1ac.EnvFromSourceApplyConfiguration](hook.EnvFrom)
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", hook.Name, err)
	}
	retries := max(hook.Attempts, 1) - 1
	spec := batchv1ac.JobSpec().
		WithActiveDeadlineSeconds(int64(max(hook.TimeoutSeconds, 1))).
		WithTemplate(hookPod(cache, hook, hookContainer(hook).WithEnv(env...).WithEnvFrom(envFrom...)))
	if hook.PerNode {
		spec.WithCompletionMode(batchv1.IndexedCompletion).
			WithCompletions(nodes).
			WithParallelism(min(nodes, 10)).
			WithBackoffLimitPerIndex(retries)
	} else {
		spec.WithBackoffLimit(retries)
	}
	return batchv1ac.Job(HookJobName(cache, hook.Name), cache.Namespace).
		WithLabels(serviceLabels(cache, v1.ComponentHook)).
		WithLabels(map[string]string{v1.HookLabel: hook.Name}).
		WithOwnerReferences(ownedBy(cache)...).
		WithSpec(spec), nil
}

// hookPod returns the pod of a hook. A hook is not a node, so the selectors of the
// cache do not match the labels of its pod.
func hookPod(cache *v1.ClusteredCache, hook *v1.Hook, container *corev1ac.ContainerApplyConfiguration) *corev1ac.PodTemplateSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithEnableServiceLinks(false).
		WithAutomountServiceAccountToken(hook.ServiceAccountName != "").
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(hookUser).
			WithRunAsGroup(hookUser).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container)
	if hook.ServiceAccountName != "" {
		spec.WithServiceAccountName(hook.ServiceAccountName)
	}
	return corev1ac.PodTemplateSpec().
		WithLabels(map[string]string{
			v1.NameLabel:      v1.HookNameValue,
			v1.InstanceLabel:  cache.Name,
			v1.ManagedByLabel: v1.ManagedByValue,
			v1.ComponentLabel: v1.ComponentHook,
			v1.HookLabel:      hook.Name,
		}).
		WithSpec(spec)
}

func hookContainer(hook *v1.Hook) *corev1ac.ContainerApplyConfiguration {
	c := corev1ac.Container().
		WithName(v1.HookContainerName).
		WithImage(hook.Image).
		WithCommand(hook.Command...).
		WithArgs(hook.Args...).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		// The pod's status then has the last lines of a hook that failed.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError)
	if resources := containerResources(&hook.Resources); resources != nil {
		c.WithResources(resources)
	}
	return c
}

// hookEnv returns the variables that every hook gets, then those of its spec. Of
// several variables with one name only the last remains, because the name is the
// key of the server's list.
func hookEnv(cache *v1.ClusteredCache, hook *v1.Hook, nodes int32) ([]*corev1ac.EnvVarApplyConfiguration, error) {
	var env []*corev1ac.EnvVarApplyConfiguration
	set := func(name, value string) {
		env = append(env, corev1ac.EnvVar().WithName(name).WithValue(value))
	}
	set("CACHE_NAME", cache.Name)
	set("CACHE_NAMESPACE", cache.Namespace)
	set("CACHE_UID", string(cache.UID))
	set("CACHE_VERSION", cache.Spec.Version)
	set("CACHE_SERVICE", NodesServiceName(cache.Name))
	if nodes == 0 {
		nodes = cache.Spec.Size // a hook that deregisters nodes needs the addresses of former nodes
	}
	set("CACHE_NODES", strings.Join(Nodes(cache, min(nodes, v1.MaxSize)), ","))
	if hook.PerNode {
		env = append(env, corev1ac.EnvVar().WithName(completionIndex).
			WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().
				WithFieldPath("metadata.annotations['"+batchv1.JobCompletionIndexAnnotation+"']"))))
		set("CACHE_NODE", nodeAddress(cache, "$("+completionIndex+")"))
	}
	own, err := applied[[]*corev1ac.EnvVarApplyConfiguration](hook.Env)
	if err != nil {
		return nil, err
	}
	for _, v := range own {
		env = slices.DeleteFunc(env, func(e *corev1ac.EnvVarApplyConfiguration) bool { return *e.Name == *v.Name })
		env = append(env, v)
	}
	return env, nil
}

// applied turns a value of the cache's spec into its apply configuration. Both have
// the same JSON.
func applied[A any](value any) (A, error) {
	var a A
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	return a, err
}
