package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/plan"
)

const (
	// fleetNamespaces is the number of namespaces of a fleet.
	fleetNamespaces = 10
	// writers is the number of requests that we send at the same time while nothing
	// is measured.
	writers = 20
	// cacheSize is the number of nodes of each cache.
	cacheSize = 3
	// childrenPerCache is the number of objects that a pass makes for each cache.
	childrenPerCache = 4
)

// populate creates n caches and lets the product create their children. It plays
// the StatefulSet controller until a pass has nothing left to do.
func (b *bench) populate(ctx context.Context, c *controlPlane, n int) error {
	var namespaces []string
	for i := range fleetNamespaces {
		namespaces = append(namespaces, fmt.Sprintf("fleet-%d", i))
	}
	if err := c.createCaches(ctx, n, namespaces...); err != nil {
		return err
	}
	log.Print("the first pass makes the children")
	if err := b.pass(ctx, c); err != nil {
		return err
	}
	return b.converge(ctx, c)
}

// createCaches creates the namespaces and spreads n caches over them.
func (c *controlPlane) createCaches(ctx context.Context, n int, namespaces ...string) error {
	for _, name := range namespaces {
		if err := c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	caches := make([]*v1.ClusteredCache, n)
	for i := range caches {
		caches[i] = &v1.ClusteredCache{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[i%len(namespaces)], Name: fmt.Sprintf("cache-%05d", i)},
			Spec: v1.ClusteredCacheSpec{Version: "1.6.38", Size: cacheSize, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			}},
		}
	}
	return inParallel(ctx, "caches created", caches, func(ctx context.Context, cache *v1.ClusteredCache) error {
		return c.client.Create(ctx, cache)
	})
}

// converge updates the status of all StatefulSets. A pass then updates the status of
// their caches.
func (b *bench) converge(ctx context.Context, c *controlPlane) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	return b.pass(ctx, c)
}

// pass runs a pass that is not measured.
func (b *bench) pass(ctx context.Context, c *controlPlane) error {
	_, err := b.run(ctx, process{program: b.product(), args: []string{"reconcile", "-A", "--yes", "-o", "name", "--kubeconfig", c.kubeconfig}})
	return err
}

// settle writes to the status of every StatefulSet that its nodes are ready, as its
// controller would do in a cluster with machines.
func (c *controlPlane) settle(ctx context.Context) error {
	var behind []*appsv1.StatefulSet
	sets, err := c.statefulSets(ctx)
	if err != nil {
		return err
	}
	for _, s := range sets {
		if s.Status.ObservedGeneration != s.Generation {
			behind = append(behind, s)
		}
	}
	return inParallel(ctx, "StatefulSets settled", behind, func(ctx context.Context, s *appsv1.StatefulSet) error {
		n := *s.Spec.Replicas
		s.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: s.Generation,
			Replicas:           n, ReadyReplicas: n, CurrentReplicas: n, UpdatedReplicas: n, AvailableReplicas: n,
			CurrentRevision: s.Name + "-1", UpdateRevision: s.Name + "-1",
		}
		return c.client.Status().Update(ctx, s)
	})
}

func (c *controlPlane) statefulSets(ctx context.Context) ([]*appsv1.StatefulSet, error) {
	var sets []*appsv1.StatefulSet
	for token := ""; ; {
		page := &appsv1.StatefulSetList{}
		if err := c.client.List(ctx, page, client.Limit(500), client.Continue(token)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			sets = append(sets, &page.Items[i])
		}
		if token = page.Continue; token == "" {
			return sets, nil
		}
	}
}

// drift scales every hundredth StatefulSet, as a user with kubectl would. It returns
// how many it scaled.
func (c *controlPlane) drift(ctx context.Context) (int, error) {
	sets, err := c.statefulSets(ctx)
	if err != nil {
		return 0, err
	}
	var drifted []*appsv1.StatefulSet
	for i := 0; i < len(sets); i += 100 {
		drifted = append(drifted, sets[i])
	}
	return len(drifted), inParallel(ctx, "StatefulSets scaled", drifted, func(ctx context.Context, s *appsv1.StatefulSet) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))
		return c.client.Patch(ctx, s, patch, client.FieldOwner("somebody"))
	})
}

// writeChildren writes the children of the first n caches to file. They are as a
// pass applies them, with their owner references.
func (c *controlPlane) writeChildren(ctx context.Context, n int, file string) error {
	list := &v1.ClusteredCacheList{}
	if err := c.client.List(ctx, list, client.Limit(int64(n))); err != nil {
		return err
	}
	manifest := struct {
		APIVersion string                       `json:"apiVersion"`
		Kind       string                       `json:"kind"`
		Items      []runtime.ApplyConfiguration `json:"items"`
	}{APIVersion: "v1", Kind: "List"}
	for i := range list.Items {
		for _, step := range plan.For(model.Input{Cache: &list.Items[i]}).Steps {
			if step.Action == model.ActionCreate {
				manifest.Items = append(manifest.Items, step.Intent)
			}
		}
	}
	if len(manifest.Items) != n*childrenPerCache {
		return fmt.Errorf("%d children of %d caches: there should be %d for each", len(manifest.Items), n, childrenPerCache)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// inParallel calls f with every item, and logs its progress from time to time.
func inParallel[T any](ctx context.Context, what string, items []T, f func(context.Context, T) error) error {
	var done atomic.Int64
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, item := range items {
		select {
		case <-ticker.C:
			log.Printf("%d of %d %s", done.Load(), len(items), what)
		default:
		}
		group.Go(func() error {
			defer done.Add(1)
			return f(ctx, item)
		})
	}
	return group.Wait()
}
