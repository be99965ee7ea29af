package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
)

// runPerObject asks for each object what fluxcd/pkg/ssa asks before it decides
// whether to apply: the live object, and what an apply would make of it. Nothing is
// applied, because nothing differs. A difference is an error.
func runPerObject(ctx context.Context, to target, args []string) error {
	concurrency, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("CONCURRENCY: %w", err)
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var manifest struct {
		Items []*unstructured.Unstructured `json:"items"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, want := range manifest.Items {
		group.Go(func() error { return compare(ctx, to.client, want) })
	}
	return group.Wait()
}

func compare(ctx context.Context, c client.Client, want *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return err
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(want),
		client.DryRunAll, client.ForceOwnership, client.FieldOwner(v1.FieldManager)); err != nil {
		return err
	}
	// Apply has replaced want by the server's answer.
	if want.GetResourceVersion() != live.GetResourceVersion() || want.GetGeneration() != live.GetGeneration() {
		return fmt.Errorf("%s %s/%s would change", want.GetKind(), want.GetNamespace(), want.GetName())
	}
	return nil
}
