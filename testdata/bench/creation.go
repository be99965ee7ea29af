package main

import (
	"context"
	"fmt"
	"log"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/testdata/bench/recording"
)

const (
	creationSize   = 1000
	creationRounds = 3
)

// creationResult is the cost of creating the children of new caches.
type creationResult struct {
	caches  int
	product *measurement
	loop    *measurement
}

// creation measures the product and a loop, which take turns to create the children
// of new caches. Each turn has its own namespace. The loop repeats, for each cache,
// what the product sent for one cache, at the same concurrency.
func (b *bench) creation(ctx context.Context, c *controlPlane, caches int) (creationResult, error) {
	file := filepath.Join(b.dir, "create.json")
	if err := b.recordCreation(ctx, c, file); err != nil {
		return creationResult{}, err
	}
	product := &measurement{scale: 1, row: row{name: "`reconcile`"}}
	loop := &measurement{scale: 1, row: row{name: "the same requests in a loop"}}
	for round := range creationRounds + 1 {
		log.Printf("creation, round %d of %d", round, creationRounds)
		ofProduct, ofLoop := fmt.Sprintf("product-%d", round), fmt.Sprintf("loop-%d", round)
		product.process = func(kubeconfig string) process {
			return process{b.product(), []string{"reconcile", "-n", ofProduct, "--yes", "-o", "json=" + b.reportFile(), "--kubeconfig", kubeconfig}}
		}
		loop.process = func(kubeconfig string) process {
			return process{b.own("loads"), []string{"create", kubeconfig, file, ofLoop}}
		}
		counting := round == 0
		turns := []turn{{product, ofProduct, counting}, {loop, ofLoop, counting}}
		if round%2 == 1 {
			slices.Reverse(turns) // the second turn of a round has a larger database
		}
		for _, t := range turns {
			if err := b.create(ctx, c, t, caches); err != nil {
				return creationResult{}, err
			}
		}
	}
	return creationResult{caches: caches, product: product, loop: loop}, nil
}

// turn is one row's turn.
type turn struct {
	*measurement
	namespace string // the namespace of its caches
	counting  bool   // the turn counts requests and measures no costs
}

// create creates caches in the turn's namespace. It then measures the creation of
// their children, or counts the requests of it.
func (b *bench) create(ctx context.Context, c *controlPlane, t turn, caches int) error {
	if err := c.createCaches(ctx, caches, t.namespace); err != nil {
		return err
	}
	if t.counting {
		requests, err := b.throughProxy(ctx, c, t.measurement)
		if err != nil {
			return err
		}
		t.requests = verbs(requests)
		t.costs = nil // these costs include the proxy
	} else {
		spent, err := b.once(ctx, t.row, c.kubeconfig)
		if err != nil {
			return err
		}
		t.costs = append(t.costs, spent)
	}
	sets := &appsv1.StatefulSetList{}
	if err := c.client.List(ctx, sets, client.InNamespace(t.namespace)); err != nil {
		return err
	}
	if len(sets.Items) != caches {
		return fmt.Errorf("%s made %d StatefulSets of %d", t.name, len(sets.Items), caches)
	}
	return nil
}

// recordCreation writes to file what the product sends for one new cache.
func (b *bench) recordCreation(ctx context.Context, c *controlPlane, file string) error {
	// The player replaces the names of cache and namespace everywhere in a request.
	const namespace = "recorded"
	if err := c.createCaches(ctx, 1, namespace); err != nil {
		return err
	}
	m := &measurement{row: row{process: func(kubeconfig string) process {
		return process{b.product(), []string{"reconcile", "-n", namespace, "--yes", "-o", "name", "--kubeconfig", kubeconfig}}
	}}}
	requests, err := b.throughProxy(ctx, c, m)
	if err != nil {
		return err
	}
	return recording.Write(file, requests)
}
