package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/resources"
)

// Images by which the control plane knows how a hook's pods end.
const (
	HookGood     = "example.com/hook:1"
	HookFailing  = "example.com/hook:exit-3"
	HookHanging  = "example.com/hook:hang"
	HookNotThere = "example.com/hook:broken"
)

// Hooks is a cache of one node whose deletion has hooks "a", "b", ... of these
// images, one attempt each.
func Hooks(images ...string) string {
	var hooks []string
	for i, image := range images {
		hooks = append(hooks, fmt.Sprintf("{name: %c, image: %q, attempts: 1}", 'a'+i, image))
	}
	return "spec: {size: 1, deletion: {hooks: [" + strings.Join(hooks, ", ") + "]}}"
}

// JobLog has the names of all Jobs that were ever made in a namespace, in order.
type JobLog struct {
	w     *World
	mu    sync.Mutex
	names []string
}

// LogJobs watches from now on until the end of the test.
func (w *World) LogJobs() *JobLog {
	w.Helper()
	watching, err := client.NewWithWatch(w.Env.Config, client.Options{Scheme: w.Env.Client.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	events, err := watching.Watch(context.Background(), &batchv1.JobList{}, client.InNamespace(w.NS))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(events.Stop)
	l := &JobLog{w: w}
	go func() {
		for event := range events.ResultChan() {
			if job, ok := event.Object.(*batchv1.Job); ok && event.Type == watch.Added {
				l.mu.Lock()
				l.names = append(l.names, job.Name)
				l.mu.Unlock()
			}
		}
	}()
	return l
}

// Made waits until the log is as far as the API server: a Job made now is in it.
func (l *JobLog) Made() []string {
	l.w.Helper()
	mark := l.w.SomeJob("")
	mark.GenerateName = "mark-"
	l.w.Create(mark)
	var names []string
	l.w.Eventually("the watch has seen the mark", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		names = slices.DeleteFunc(slices.Clone(l.names), func(n string) bool { return strings.HasPrefix(n, "mark-") })
		return slices.Contains(l.names, mark.Name)
	})
	return names
}

// Wants the Jobs of a cache's hooks, each once and in order.
func (l *JobLog) Wants(c *v1.ClusteredCache, hooks ...string) {
	l.w.Helper()
	var want []string
	for _, hook := range hooks {
		want = append(want, resources.HookJobName(c, hook))
	}
	if made := l.Made(); !slices.Equal(want, made) {
		l.w.Errorf("Jobs made: %v, want %v", made, want)
	}
}

// SomeJob is a Job of nobody's, which is not created yet.
func (w *World) SomeJob(name string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: w.Meta(name)}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}}}
	return job
}

// HookJob is the Job of a hook of c.
func (w *World) HookJob(c *v1.ClusteredCache, hook string) *batchv1.Job {
	w.Helper()
	return Get(w, resources.HookJobName(c, hook), &batchv1.Job{})
}
