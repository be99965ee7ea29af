package stories_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/resources"
)

// Images by which the control plane knows how a hook's pods end.
const (
	imageGood     = "example.com/hook:1"
	imageFailing  = "example.com/hook:exit-3"
	imageHanging  = "example.com/hook:hang"
	imageNotThere = "example.com/hook:broken"
)

// withHooks gives a cache a deletion with hooks "a", "b", ... of these images,
// one attempt each.
func withHooks(images ...string) func(*v1.ClusteredCache) {
	return func(c *v1.ClusteredCache) {
		c.Spec.Size = 1
		c.Spec.Deletion = &v1.DeletionSpec{}
		for i, image := range images {
			c.Spec.Deletion.Hooks = append(c.Spec.Deletion.Hooks, v1.Hook{Name: string(rune('a' + i)), Image: image, Attempts: 1})
		}
	}
}

// remove deletes a cache and does not wait for its end.
func remove(t *testing.T, ns, name string, opts ...client.DeleteOption) *v1.ClusteredCache {
	t.Helper()
	c := get(t, ns, name, &v1.ClusteredCache{})
	if err := env.Client.Delete(t.Context(), c, opts...); err != nil {
		t.Fatal(err)
	}
	return c
}

// jobLog are the names of all Jobs that were ever made in a namespace, in order.
type jobLog struct {
	mu    sync.Mutex
	names []string
}

// logJobs watches from now on until the end of the test.
func logJobs(t *testing.T, ns string) *jobLog {
	t.Helper()
	watching, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := watching.Watch(context.Background(), &batchv1.JobList{}, client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	l := &jobLog{}
	go func() {
		for event := range w.ResultChan() {
			if job, ok := event.Object.(*batchv1.Job); ok && event.Type == watch.Added {
				l.mu.Lock()
				l.names = append(l.names, job.Name)
				l.mu.Unlock()
			}
		}
	}()
	return l
}

// made waits until the log is as far as the API server: a Job made now is in it.
func (l *jobLog) made(t *testing.T, ns string) []string {
	t.Helper()
	mark := &batchv1.Job{ObjectMeta: meta(ns, "")}
	mark.GenerateName = "mark-"
	mark.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}}}
	mustCreate(t, mark)
	var names []string
	testenv.Eventually(t, "the watch has seen the mark", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		names = slices.DeleteFunc(slices.Clone(l.names), func(n string) bool { return strings.HasPrefix(n, "mark-") })
		return slices.Contains(l.names, mark.Name)
	})
	return names
}

// wantJobs are the Jobs of a cache's hooks, each once and in order.
func wantJobs(t *testing.T, l *jobLog, c *v1.ClusteredCache, hooks ...string) {
	t.Helper()
	var want []string
	for _, hook := range hooks {
		want = append(want, resources.HookJobName(c, hook))
	}
	if made := l.made(t, c.Namespace); !slices.Equal(want, made) {
		t.Errorf("Jobs made: %v, want %v", made, want)
	}
}

func hookJob(t *testing.T, c *v1.ClusteredCache, hook string) *batchv1.Job {
	t.Helper()
	return get(t, c.Namespace, resources.HookJobName(c, hook), &batchv1.Job{})
}

func isGone(t *testing.T, ns, name string, o client.Object) bool {
	t.Helper()
	return apierrors.IsNotFound(env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o))
}

func finalizers(t *testing.T, ns, name string) []string {
	t.Helper()
	return get(t, ns, name, &v1.ClusteredCache{}).Finalizers
}
