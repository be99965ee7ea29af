package stories_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// One run with --wait takes a deletion from start to end: traffic away, time
// to leave, one hook after the other, release; then the garbage collector
// takes the children, and the Jobs with them.
func TestDeletionFromStartToEnd(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood, imageGood), func(c *v1.ClusteredCache) { c.Spec.Deletion.DrainSeconds = 2 })
	settle(t, ns)
	jobs := logJobs(t, ns)
	c := remove(t, ns, "cache")

	// The first pass: no client finds the nodes any more, who themselves stay.
	begin := time.Now()
	wantVerdict(t, pass(t, ns), "cache", model.Progressing, v1.ReasonDraining)
	gone(t, ns, "cache", &corev1.Service{})
	get(t, ns, "nodes-cache", &corev1.Service{})
	get(t, ns, "cache", &appsv1.StatefulSet{})
	draining := get(t, ns, "cache", &v1.ClusteredCache{})
	since, err := time.Parse(time.RFC3339Nano, draining.Annotations[v1.DrainingSinceAnnotation])
	if err != nil || since.Before(begin) {
		t.Errorf("draining since %s (%v), deleted %s", since, err, begin)
	}
	if r := condition(draining, v1.ConditionReconciling); r.Status != metav1.ConditionTrue || r.Reason != v1.ReasonDraining {
		t.Errorf("Reconciling: %+v", r)
	}
	// A second one has nothing to write.
	before := versions(t, ns)
	pass(t, ns)
	if d := cmpDiff(before, versions(t, ns)); d != "" {
		t.Errorf("a pass while draining wrote:\n%s", d)
	}

	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonFinalized)
	if took := time.Since(since); took < 2*time.Second {
		t.Errorf("drained for %s", took)
	}
	wantJobs(t, jobs, c, "a", "b")
	for _, o := range []client.Object{&v1.ClusteredCache{}, &appsv1.StatefulSet{}} {
		testenv.Eventually(t, "the cache is collected", func() bool { return isGone(t, ns, "cache", o) })
	}
	for _, hook := range []string{"a", "b"} {
		testenv.Eventually(t, "its Jobs are collected", func() bool { return isGone(t, ns, resources.HookJobName(c, hook), &batchv1.Job{}) })
	}
}

// A hook is a Job of the cache, and waits for the one before.
func TestHookIsAJobOfTheCache(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageHanging, imageGood))
	settle(t, ns)
	c := remove(t, ns, "cache")
	for range 3 {
		wantVerdict(t, pass(t, ns), "cache", model.Progressing, v1.ReasonRunningHook)
	}
	job := hookJob(t, c, "a")
	if !metav1.IsControlledBy(job, c) || *job.Spec.BackoffLimit != 0 || *job.Spec.ActiveDeadlineSeconds != 600 || job.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("%+v", job)
	}
	gone(t, ns, resources.HookJobName(c, "b"), &batchv1.Job{})
	status := get(t, ns, "cache", &v1.ClusteredCache{})
	if r := condition(status, v1.ConditionReconciling); r.Status != metav1.ConditionTrue || r.Reason != v1.ReasonRunningHook || !strings.Contains(r.Message, "Job "+ns+"/"+job.Name) {
		t.Errorf("Reconciling: %+v", r)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Annotations = map[string]string{v1.SkipHooksAnnotation: "all"} })
	pass(t, ns)
	gone(t, ns, "cache", &v1.ClusteredCache{})
}

// A hook that has used up its attempts keeps the cache, and the message gives
// the ways out: try again, skip it, or go on without (the endpoint
// that answers 500 is the hook's exit status).
func TestFailedHookBlocks(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name  string
		out   func(t *testing.T, c *v1.ClusteredCache)
		hooks []string
		says  string
	}{
		{"try again", func(t *testing.T, c *v1.ClusteredCache) {
			update(t, c, func(c *v1.ClusteredCache) { c.Spec.Deletion.Hooks[0].Image = imageGood })
			if err := env.Client.Delete(t.Context(), hookJob(t, c, "a"), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
		}, []string{"a", "a", "b"}, ""},
		{"skip", func(t *testing.T, c *v1.ClusteredCache) {
			update(t, c, func(c *v1.ClusteredCache) { c.Annotations = map[string]string{v1.SkipHooksAnnotation: "a"} })
		}, []string{"a", "b"}, "hook a (1 of 2) was skipped (annotation cache.example.com/skip-hooks)"},
		{"continue", func(t *testing.T, c *v1.ClusteredCache) {
			update(t, c, func(c *v1.ClusteredCache) { c.Spec.Deletion.OnFailure = v1.OnFailureContinue })
		}, []string{"a", "b"}, "hook a (1 of 2) failed and was skipped (onFailure: Continue)"},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // most of the time is the Job controller's pause between attempts
			ns := env.Namespace(t)
			create(t, ns, "cache", withHooks(imageFailing, imageGood), func(c *v1.ClusteredCache) {
				c.Finalizers = []string{"other.example.com/x"}
				c.Spec.Deletion.Hooks[0].Attempts = 2
			})
			settle(t, ns)
			jobs := logJobs(t, ns)
			c := remove(t, ns, "cache")
			f := settle(t, ns)
			wantVerdict(t, f, "cache", model.Stalled, v1.ReasonHookFailed)
			if n := hookJob(t, c, "a").Status.Failed; n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
			stalled := condition(get(t, ns, "cache", &v1.ClusteredCache{}), v1.ConditionStalled)
			for _, part := range []string{"BackoffLimitExceeded", "delete job " + resources.HookJobName(c, "a"), "skip-hooks=a", "onFailure"} {
				if stalled.Status != metav1.ConditionTrue || !strings.Contains(stalled.Message, part) {
					t.Errorf("%q is not in Stalled: %+v", part, stalled)
				}
			}
			wantJobs(t, jobs, c, "a")
			way.out(t, c)
			v := verdict(t, settle(t, ns), "cache")
			if v.Reason != v1.ReasonFinalized || !strings.Contains(v.Message, way.says) {
				t.Errorf("%+v", v)
			}
			wantJobs(t, jobs, c, way.hooks...)

			// The other's finalizer stays; the status says that ours does not keep the cache.
			left := get(t, ns, "cache", &v1.ClusteredCache{})
			if d := cmpDiff([]string{"other.example.com/x"}, left.Finalizers); d != "" {
				t.Error(d)
			}
			if s, r := condition(left, v1.ConditionStalled), condition(left, v1.ConditionReconciling); s.Status != metav1.ConditionFalse || r.Status != metav1.ConditionFalse || s.Reason != v1.ReasonFinalized {
				t.Errorf("Stalled %+v, Reconciling %+v", s, r)
			}
			patch(t, left, `{"metadata":{"finalizers":null}}`)
		})
	}
}

// An image that cannot be pulled is named while the hook's time runs, which
// ends it.
func TestHookWithoutItsImage(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageNotThere), func(c *v1.ClusteredCache) { c.Spec.Deletion.Hooks[0].TimeoutSeconds = 4 })
	settle(t, ns)
	c := remove(t, ns, "cache")
	testenv.Eventually(t, "the image is named", func() bool {
		v := verdict(t, pass(t, ns), "cache")
		return v.Reason == v1.ReasonRunningHook && strings.Contains(v.Message, "image "+imageNotThere+" cannot be pulled")
	})
	f := settle(t, ns)
	wantVerdict(t, f, "cache", model.Stalled, v1.ReasonHookFailed)
	if m := verdict(t, f, "cache").Message; !strings.Contains(m, "DeadlineExceeded") {
		t.Error(m)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Annotations = map[string]string{v1.SkipHooksAnnotation: "a"} })
	settle(t, ns)
	gone(t, ns, "cache", &v1.ClusteredCache{})
}

// A hook whose pod nothing lets in (a quota here) says that it has none, and
// where the reason is told.
func TestHookWithoutAPod(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood))
	settle(t, ns)
	quota := &corev1.ResourceQuota{ObjectMeta: meta(ns, "full")}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: quantity("1")}
	mustCreate(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard} // its controller does not run here
	if err := env.Client.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c := remove(t, ns, "cache")
	job := resources.HookJobName(c, "a")
	testenv.Eventually(t, "the hook without a pod is named", func() bool {
		v := verdict(t, pass(t, ns), "cache")
		return v.Reason == v1.ReasonRunningHook && strings.HasSuffix(v.Message, "it has no pod; if that lasts, see why: kubectl -n "+ns+" describe job "+job)
	})
	if err := env.Client.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Annotations = map[string]string{v1.SkipHooksAnnotation: "a"} })
	settle(t, ns)
	gone(t, ns, "cache", &v1.ClusteredCache{})
}

// A perNode hook runs once for each node that there is, and each pod knows its
// node: the number comes before the variable that refers to it, and the Job
// controller adds none of its own behind it.
func TestHookPerNode(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageHanging), func(c *v1.ClusteredCache) {
		c.Spec.Size = 3
		c.Spec.Deletion.Hooks[0].PerNode = true
	})
	settle(t, ns)
	c := remove(t, ns, "cache")
	pass(t, ns)
	job := hookJob(t, c, "a")
	if *job.Spec.Completions != 3 || *job.Spec.CompletionMode != batchv1.IndexedCompletion || *job.Spec.BackoffLimitPerIndex != 0 {
		t.Errorf("%+v", job.Spec)
	}
	pods := &corev1.PodList{}
	testenv.Eventually(t, "three pods", func() bool {
		if err := env.Client.List(t.Context(), pods, client.InNamespace(ns), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
			t.Fatal(err)
		}
		return len(pods.Items) == 3
	})
	seen := map[string]bool{}
	for _, p := range pods.Items {
		var names []string
		for _, v := range p.Spec.Containers[0].Env {
			names = append(names, v.Name)
			if v.Name == "CACHE_NODE" && v.Value != "cache-$(JOB_COMPLETION_INDEX).nodes-cache."+ns+".svc:11211" {
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
	if m := verdict(t, pass(t, ns), "cache").Message; !strings.Contains(m, "done for 0 of 3 nodes") {
		t.Error(m)
	}
	for i := range pods.Items {
		finishPod(t, &pods.Items[i])
	}
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonFinalized)
}

// finishPod ends a pod that hangs, well.
func finishPod(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Status().Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`))); err != nil {
		t.Fatal(err)
	}
}

// A Job of a hook's name that is not this cache's: its result is never read.
func TestHookNameConflict(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withHooks(imageGood))
	settle(t, ns)
	foreign := &batchv1.Job{ObjectMeta: meta(ns, resources.HookJobName(c, "a"))}
	foreign.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}}}
	mustCreate(t, foreign)
	testenv.Eventually(t, "the other's Job is complete", func() bool { return hookJob(t, c, "a").Status.Succeeded == 1 })
	remove(t, ns, "cache")
	for range 2 {
		wantVerdict(t, settle(t, ns), "cache", model.Stalled, v1.ReasonNameConflict)
	}
	if err := env.Client.Delete(t.Context(), foreign, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonFinalized)
}

// Nodes that never became ready keep no deletion from going on.
func TestDeletionOfACacheThatNeverBecameReady(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood, imageGood), func(c *v1.ClusteredCache) {
		c.Spec.Version = "broken"
		c.Spec.Deletion.DrainSeconds = 1
		c.Spec.Deletion.Hooks[0].PerNode = true
	})
	pass(t, ns)
	jobs := logJobs(t, ns)
	c := remove(t, ns, "cache")
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonFinalized)
	wantJobs(t, jobs, c, "a", "b")
}

// A cache whose nodes were never made has none to drain and none to run per
// node; its other hooks run.
func TestDeletionOfACacheThatNeverCameUp(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	create(t, ns, "cache", withHooks(imageGood, imageGood), func(c *v1.ClusteredCache) {
		c.Spec.Config = &v1.ConfigReference{Name: "not-there"}
		c.Spec.Deletion.DrainSeconds = 3600
		c.Spec.Deletion.Hooks[0].PerNode = true
	})
	pass(t, ns)
	jobs := logJobs(t, ns)
	c := remove(t, ns, "cache")
	v := verdict(t, settle(t, ns), "cache")
	if v.Reason != v1.ReasonFinalized || !strings.Contains(v.Message, "hook a (1 of 2) was skipped: it runs per node, and there is none") {
		t.Errorf("%+v", v)
	}
	wantJobs(t, jobs, c, "b")
}
