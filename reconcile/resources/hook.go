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
	// hookUser is who a hook's container runs as, whatever user its image
	// names: one named by a word cannot be told from root.
	hookUser int64 = 65532

	// completionIndex is the variable by which an Indexed Job's pod knows its
	// number. The Job controller would add it after ours, too late for ours to
	// refer to it.
	completionIndex = "JOB_COMPLETION_INDEX"

	// A Job's name is the value of a label of its pods, and with a node's
	// ordinal behind it the host name of a pod: 63 characters both. This leaves
	// room for the ordinals of MaxSize nodes.
	maxJobName = 59
)

// HookJobName is the name of the Job of a cache's hook. It depends on the
// cache's uid: a cache of the same name that comes later has Jobs of its own.
func HookJobName(cache *v1.ClusteredCache, hook string) string {
	sum := sha256.Sum256([]byte(string(cache.UID) + "/" + hook))
	suffix := "-" + hook + "-" + hex.EncodeToString(sum[:5])
	name := strings.ReplaceAll(cache.Name, ".", "-")
	name = name[:max(1, min(len(name), maxJobName-len(suffix)))]
	return strings.TrimRight(name, "-") + suffix
}

// HookJob runs a hook of a cache that is being deleted and has so many nodes,
// none if they are gone already. Nothing removes a Job that has ended before
// the cache goes: its result is read in a later pass.
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

// hookPod has labels that no selector of the cache finds: a hook is no node.
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
		// The last lines of a hook that failed are in the pod's status too.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError)
	if resources := containerResources(&hook.Resources); resources != nil {
		c.WithResources(resources)
	}
	return c
}

// hookEnv is what every hook sees, then what the hook asks for. Of one name
// the last is taken: the server keeps its list by name.
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
		nodes = cache.Spec.Size // the addresses of those that were; whoever keeps a register needs them
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

// applied turns a value of the cache's spec into the form in which it is
// applied. The two are the same JSON.
func applied[A any](value any) (A, error) {
	var a A
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	return a, err
}
