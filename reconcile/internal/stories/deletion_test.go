package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// One run with --wait takes a deletion from start to end: traffic away, time
// to leave, one hook after the other, release; then the garbage collector
// takes the children, and the Jobs with them.
func TestDeletionFromStartToEnd(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Hooks(world.HookGood, world.HookGood), `spec: {deletion: {drainSeconds: 2}}`)
	w.Settle()
	jobs := w.LogJobs()
	c := w.Remove()

	// The first pass: no client finds the nodes any more, who themselves stay.
	begin := time.Now()
	w.Pass().Wants(model.Progressing, v1.ReasonDraining)
	w.Gone(&corev1.Service{})
	w.NodesService()
	w.StatefulSet()
	draining := w.Stored()
	since, err := time.Parse(time.RFC3339Nano, draining.Annotations[v1.DrainingSinceAnnotation])
	if err != nil || since.Before(begin) {
		t.Errorf("draining since %s (%v), deleted %s", since, err, begin)
	}
	if r := world.ConditionOf(draining, v1.ConditionReconciling); r.Status != metav1.ConditionTrue || r.Reason != v1.ReasonDraining {
		t.Errorf("Reconciling: %+v", r)
	}
	// A second one has nothing to write.
	before := w.Versions()
	w.Pass()
	if d := cmp.Diff(before, w.Versions()); d != "" {
		t.Errorf("a pass while draining wrote:\n%s", d)
	}

	w.Settle().Wants(model.Settled, v1.ReasonFinalized)
	if took := time.Since(since); took < 2*time.Second {
		t.Errorf("drained for %s", took)
	}
	jobs.Wants(c, "a", "b")
	for _, o := range []client.Object{&v1.ClusteredCache{}, &appsv1.StatefulSet{}} {
		w.Eventually("the cache is collected", func() bool { return w.IsGone("cache", o) })
	}
	for _, hook := range []string{"a", "b"} {
		w.Eventually("its Jobs are collected", func() bool { return w.IsGone(resources.HookJobName(c, hook), &batchv1.Job{}) })
	}
}

// A hook is a Job of the cache, and waits for the one before.
func TestHookIsAJobOfTheCache(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Hooks(world.HookHanging, world.HookGood))
	w.Settle()
	c := w.Remove()
	for range 3 {
		w.Pass().Wants(model.Progressing, v1.ReasonRunningHook)
	}
	job := w.HookJob(c, "a")
	if !metav1.IsControlledBy(job, c) || *job.Spec.BackoffLimit != 0 || *job.Spec.ActiveDeadlineSeconds != 600 || job.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("%+v", job)
	}
	w.GoneNamed(resources.HookJobName(c, "b"), &batchv1.Job{})
	status := w.Stored()
	if r := world.ConditionOf(status, v1.ConditionReconciling); r.Status != metav1.ConditionTrue || r.Reason != v1.ReasonRunningHook || !strings.Contains(r.Message, "Job "+w.NS+"/"+job.Name) {
		t.Errorf("Reconciling: %+v", r)
	}
	w.Edit(`metadata: {annotations: {cache.example.com/skip-hooks: all}}`)
	w.Pass()
	w.Gone(&v1.ClusteredCache{})
}

// A hook that has used up its attempts keeps the cache, and the message gives
// the ways out: try again, skip it, or go on without (the endpoint
// that answers 500 is the hook's exit status).
func TestFailedHookBlocks(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name  string
		out   func(w *world.World, c *v1.ClusteredCache)
		hooks []string
		says  string
	}{
		{"try again", func(w *world.World, c *v1.ClusteredCache) {
			w.Edit(hooksOf("{name: a, image: "+world.HookGood+", attempts: 2}", "{name: b, image: "+world.HookGood+", attempts: 1}"))
			w.Delete(w.HookJob(c, "a"), client.PropagationPolicy(metav1.DeletePropagationBackground))
		}, []string{"a", "a", "b"}, ""},
		{"skip", func(w *world.World, c *v1.ClusteredCache) {
			w.Edit(`metadata: {annotations: {cache.example.com/skip-hooks: a}}`)
		}, []string{"a", "b"}, "hook a (1 of 2) was skipped (annotation cache.example.com/skip-hooks)"},
		{"continue", func(w *world.World, c *v1.ClusteredCache) {
			w.Edit(`spec: {deletion: {onFailure: Continue}}`)
		}, []string{"a", "b"}, "hook a (1 of 2) failed and was skipped (onFailure: Continue)"},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // most of the time is the Job controller's pause between attempts
			w := world.Shared(t)
			w.Cache(`metadata: {finalizers: [other.example.com/x]}`, `spec: {size: 1}`,
				hooksOf("{name: a, image: "+world.HookFailing+", attempts: 2}", "{name: b, image: "+world.HookGood+", attempts: 1}"))
			w.Settle()
			jobs := w.LogJobs()
			c := w.Remove()
			f := w.Settle()
			f.Wants(model.Stalled, v1.ReasonHookFailed)
			if n := w.HookJob(c, "a").Status.Failed; n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
			stalled := w.Condition(v1.ConditionStalled)
			for _, part := range []string{"BackoffLimitExceeded", "delete job " + resources.HookJobName(c, "a"), "skip-hooks=a", "onFailure"} {
				if stalled.Status != metav1.ConditionTrue || !strings.Contains(stalled.Message, part) {
					t.Errorf("%q is not in Stalled: %+v", part, stalled)
				}
			}
			jobs.Wants(c, "a")
			way.out(w, c)
			v := w.Settle().Verdict()
			if v.Reason != v1.ReasonFinalized || !strings.Contains(v.Message, way.says) {
				t.Errorf("%+v", v)
			}
			jobs.Wants(c, way.hooks...)

			// The other's finalizer stays; the status says that ours does not keep the cache.
			left := w.Stored()
			if d := cmp.Diff([]string{"other.example.com/x"}, left.Finalizers); d != "" {
				t.Error(d)
			}
			if s, r := world.ConditionOf(left, v1.ConditionStalled), world.ConditionOf(left, v1.ConditionReconciling); s.Status != metav1.ConditionFalse || r.Status != metav1.ConditionFalse || s.Reason != v1.ReasonFinalized {
				t.Errorf("Stalled %+v, Reconciling %+v", s, r)
			}
			w.Patch(left, `{"metadata":{"finalizers":null}}`)
		})
	}
}

// An image that cannot be pulled is named while the hook's time runs, which
// ends it.
func TestHookWithoutItsImage(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {size: 1}`, hooksOf("{name: a, image: "+world.HookNotThere+", attempts: 1, timeoutSeconds: 4}"))
	w.Settle()
	w.Remove()
	w.Eventually("the image is named", func() bool {
		v := w.Pass().Verdict()
		return v.Reason == v1.ReasonRunningHook && strings.Contains(v.Message, "image "+world.HookNotThere+" cannot be pulled")
	})
	f := w.Settle()
	f.Wants(model.Stalled, v1.ReasonHookFailed)
	if m := f.Verdict().Message; !strings.Contains(m, "DeadlineExceeded") {
		t.Error(m)
	}
	w.Edit(`metadata: {annotations: {cache.example.com/skip-hooks: a}}`)
	w.Settle()
	w.Gone(&v1.ClusteredCache{})
}

// A hook whose pod nothing lets in (a quota here) says that it has none, and
// where the reason is told.
func TestHookWithoutAPod(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Hooks(world.HookGood))
	w.Settle()
	quota := w.Quota(corev1.ResourcePods, "1")
	c := w.Remove()
	job := resources.HookJobName(c, "a")
	w.Eventually("the hook without a pod is named", func() bool {
		v := w.Pass().Verdict()
		return v.Reason == v1.ReasonRunningHook && strings.HasSuffix(v.Message, "it has no pod; if that lasts, see why: kubectl -n "+w.NS+" describe job "+job)
	})
	w.Delete(quota)
	w.Edit(`metadata: {annotations: {cache.example.com/skip-hooks: a}}`)
	w.Settle()
	w.Gone(&v1.ClusteredCache{})
}

// A perNode hook runs once for each node that there is, and each pod knows its
// node: the number comes before the variable that refers to it, and the Job
// controller adds none of its own behind it.
func TestHookPerNode(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(hooksOf("{name: a, image: " + world.HookHanging + ", attempts: 1, perNode: true}"))
	w.Settle()
	c := w.Remove()
	w.Pass()
	job := w.HookJob(c, "a")
	if *job.Spec.Completions != 3 || *job.Spec.CompletionMode != batchv1.IndexedCompletion || *job.Spec.BackoffLimitPerIndex != 0 {
		t.Errorf("%+v", job.Spec)
	}
	pods := &corev1.PodList{}
	w.Eventually("three pods", func() bool {
		w.List(pods, client.MatchingLabels{batchv1.JobNameLabel: job.Name})
		return len(pods.Items) == 3
	})
	seen := map[string]bool{}
	for _, p := range pods.Items {
		var names []string
		for _, v := range p.Spec.Containers[0].Env {
			names = append(names, v.Name)
			if v.Name == "CACHE_NODE" && v.Value != "cache-$(JOB_COMPLETION_INDEX).nodes-cache."+w.NS+".svc:11211" {
				t.Errorf("CACHE_NODE is %s", v.Value)
			}
		}
		if at := strings.Join(names, " "); strings.Count(at, "JOB_COMPLETION_INDEX") != 1 || !strings.HasSuffix(at, "JOB_COMPLETION_INDEX CACHE_NODE") {
			t.Errorf("variables: %s", at)
		}
		seen[p.Annotations[batchv1.JobCompletionIndexAnnotation]] = true
	}
	if len(seen) != 3 || !seen["0"] || !seen["2"] {
		t.Errorf("indexes %v", seen)
	}
	if m := w.Pass().Verdict().Message; !strings.Contains(m, "done for 0 of 3 nodes") {
		t.Error(m)
	}
	for i := range pods.Items {
		finishPod(w, &pods.Items[i])
	}
	w.Settle().Wants(model.Settled, v1.ReasonFinalized)
}

// finishPod ends a pod that hangs, well.
func finishPod(w *world.World, p *corev1.Pod) {
	w.Helper()
	w.Read(p)
	if err := w.Env.Client.Status().Patch(w.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`))); err != nil {
		w.Fatal(err)
	}
}

// A Job of a hook's name that is not this cache's: its result is never read.
func TestHookNameConflict(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	c := w.Cache(world.Hooks(world.HookGood))
	w.Settle()
	foreign := &batchv1.Job{ObjectMeta: w.Meta(resources.HookJobName(c, "a"))}
	foreign.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}}}
	w.Create(foreign)
	w.Eventually("the other's Job is complete", func() bool { return w.HookJob(c, "a").Status.Succeeded == 1 })
	w.Remove()
	for range 2 {
		w.Settle().Wants(model.Stalled, v1.ReasonNameConflict)
	}
	w.Delete(foreign, client.PropagationPolicy(metav1.DeletePropagationBackground))
	w.Settle().Wants(model.Settled, v1.ReasonFinalized)
}

// hooksOf is a deletion with these hooks.
func hooksOf(hooks ...string) string {
	return "spec: {deletion: {hooks: [" + strings.Join(hooks, ", ") + "]}}"
}

// firstPerNode is a cache with two hooks, the first of which runs per node.
var firstPerNode = `spec: {size: 1, deletion: {hooks: [
  {name: a, image: "` + world.HookGood + `", attempts: 1, perNode: true},
  {name: b, image: "` + world.HookGood + `", attempts: 1}]}}`

// Nodes that never became ready keep no deletion from going on.
func TestDeletionOfACacheThatNeverBecameReady(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(firstPerNode, `spec: {version: broken, deletion: {drainSeconds: 1}}`)
	w.Pass()
	jobs := w.LogJobs()
	c := w.Remove()
	w.Settle().Wants(model.Settled, v1.ReasonFinalized)
	jobs.Wants(c, "a", "b")
}

// A cache whose nodes were never made has none to drain and none to run per
// node; its other hooks run.
func TestDeletionOfACacheThatNeverCameUp(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(firstPerNode, `spec: {config: {name: not-there}, deletion: {drainSeconds: 3600}}`)
	w.Pass()
	jobs := w.LogJobs()
	c := w.Remove()
	v := w.Settle().Verdict()
	if v.Reason != v1.ReasonFinalized || !strings.Contains(v.Message, "hook a (1 of 2) was skipped: it runs per node, and there is none") {
		t.Errorf("%+v", v)
	}
	jobs.Wants(c, "b")
}
