package plan

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// hookPhase is how far a hook is.
type hookPhase int

const (
	hookAbsent  hookPhase = iota // the Job is to be created
	hookRunning                  // neither done nor failed yet
	hookDone
	hookFailed  // keeps the cache
	hookForeign // the Job of this name does not belong to this cache
	hookSkipped // the deletion continues without it
)

// hook is one hook of a cache that is being deleted.
type hook struct {
	spec  *v1.Hook
	title string // such as "hook backup (1 of 3)"
	job   model.Ref
	phase hookPhase
	// message describes the phase. It is empty for a hook that is skipped because
	// the namespace is being deleted.
	message string
}

func hooksOf(in model.Input) []hook {
	if in.Cache.Spec.Deletion == nil {
		return nil
	}
	specs := in.Cache.Spec.Deletion.Hooks
	hooks := make([]hook, 0, len(specs))
	for i := range specs {
		h := hook{
			spec:  &specs[i],
			title: fmt.Sprintf("hook %s (%d of %d)", specs[i].Name, i+1, len(specs)),
			job:   model.Ref{Kind: model.KindJob, Namespace: in.Cache.Namespace, Name: resources.HookJobName(in.Cache, specs[i].Name)},
		}
		h.phase, h.message = h.stand(in)
		hooks = append(hooks, h)
	}
	return hooks
}

// stand returns the phase of the hook and its message.
func (h *hook) stand(in model.Input) (hookPhase, string) {
	job := in.Deletion.Jobs[h.job.Name]
	own := job != nil && metav1.IsControlledBy(job, in.Cache)
	ended, why := health.JobResult(job)
	switch {
	case own && job.DeletionTimestamp == nil && ended == batchv1.JobComplete:
		return hookDone, ""
	case isSkipped(in.Cache, h.spec.Name):
		return hookSkipped, fmt.Sprintf("%s was skipped (annotation %s)", h.title, v1.SkipHooksAnnotation)
	case in.Deletion.NamespaceTerminating:
		return hookSkipped, ""
	case job == nil && h.spec.PerNode && nodesOf(in) == 0:
		return hookSkipped, fmt.Sprintf("%s was skipped: it runs per node, and there is none", h.title)
	case job == nil:
		return hookAbsent, h.running(in, &batchv1.Job{})
	case !own:
		return hookForeign, fmt.Sprintf("%s cannot run: %s exists and does not belong to this cache; delete it, or continue without the hook: %s",
			h.title, h.job, h.skipCommand(in))
	case job.DeletionTimestamp != nil:
		return hookRunning, fmt.Sprintf("%s waits: %s is being deleted; the hook runs again when it is gone", h.title, h.job)
	case ended == batchv1.JobFailed && in.Cache.Spec.Deletion.OnFailure == v1.OnFailureContinue:
		return hookSkipped, fmt.Sprintf("%s failed and was skipped (onFailure: Continue): %s: %s", h.title, h.job, why)
	case ended == batchv1.JobFailed:
		return hookFailed, fmt.Sprintf("%s failed: %s: %s. To try again: kubectl -n %s delete job %s. To continue without it: %s, or set spec.deletion.onFailure to Continue",
			h.title, h.job, why, h.job.Namespace, h.job.Name, h.skipCommand(in))
	}
	return hookRunning, h.running(in, job)
}

func (h *hook) skipCommand(in model.Input) string {
	names := append(skipNames(in.Cache), h.spec.Name)
	return fmt.Sprintf("kubectl -n %s annotate --overwrite clusteredcache %s %s=%s",
		in.Cache.Namespace, in.Cache.Name, v1.SkipHooksAnnotation, strings.Join(names, ","))
}

// running describes a Job that has not ended, in words that stay the same while
// nothing changes.
func (h *hook) running(in model.Input, job *batchv1.Job) string {
	message := fmt.Sprintf("%s runs as %s", h.title, h.job)
	if h.spec.PerNode {
		nodes := nodesOf(in)
		if job.Spec.Completions != nil {
			nodes = *job.Spec.Completions
		}
		message += fmt.Sprintf(": done for %d of %d nodes", job.Status.Succeeded, nodes)
		if job.Status.Failed > 0 {
			message += fmt.Sprintf(", %d attempts failed", job.Status.Failed)
		}
	} else {
		attempts := max(h.spec.Attempts, 1)
		message += fmt.Sprintf(" (attempt %d of %d)", min(job.Status.Failed+1, attempts), attempts)
	}
	if in.Live.Owned(in.Cache).StatefulSet == nil {
		message += fmt.Sprintf(", without nodes: StatefulSet %s/%s does not exist", in.Cache.Namespace, in.Cache.Name)
	}
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		message += "; someone has suspended the Job"
	}
	if why := health.JobTrouble(job, in.Deletion.Pods, in.Now); why != "" {
		message += "; " + why
	}
	return message
}

// nodesOf returns the number of nodes of a cache that is being deleted.
func nodesOf(in model.Input) int32 {
	sts := in.Live.Owned(in.Cache).StatefulSet
	if sts == nil || sts.Spec.Replicas == nil {
		return 0
	}
	return min(*sts.Spec.Replicas, v1.MaxSize)
}

// skipNames returns the names in the annotation skip-hooks, in order.
func skipNames(cache *v1.ClusteredCache) []string {
	var names []string
	for name := range strings.SplitSeq(cache.Annotations[v1.SkipHooksAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func isSkipped(cache *v1.ClusteredCache, hook string) bool {
	return slices.ContainsFunc(skipNames(cache), func(name string) bool { return name == hook || name == v1.SkipAllHooks })
}
