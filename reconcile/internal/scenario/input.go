package scenario

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/plan"
)

// Now is the time in every scenario.
var Now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Input returns what a pass observes of the scenario. The reader of passes reads it
// from an API server in memory that has the scenario's objects.
func (s Scenario) Input(t testing.TB) model.Input {
	t.Helper()
	in, err := s.observe(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return in
}

// observe completes an observation in the order in which a visit of a pass does.
func (s Scenario) observe(ctx context.Context) (model.Input, error) {
	config := &rest.Config{Host: "http://scenario", Transport: s.server(), QPS: -1}
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		return model.Input{}, err
	}
	reader := observe.NewReader(c)
	in, err := reader.One(ctx, client.ObjectKeyFromObject(s.Cache))
	if err != nil {
		return in, err
	}
	in.Now = Now
	if in.Config, err = reader.Config(ctx, in.Cache); err != nil {
		return in, err
	}
	if in.OldClaims, err = reader.OldClaims(ctx, in); err != nil {
		return in, err
	}
	if in.Deletion, err = reader.Deletion(ctx, in.Cache); err != nil {
		return in, err
	}
	if plan.NeedsNodes(in) {
		if in.Nodes, err = reader.Nodes(ctx, in); err != nil {
			return in, err
		}
	}
	if plan.NeedsVolumes(in) {
		in.Volumes, err = reader.Volumes(ctx, in)
	}
	return in, err
}

// server returns an API server that has the objects of the scenario, and the
// namespace if live.yaml has none.
func (s Scenario) server() server {
	objects := server{s.Cache}
	if s.ConfigMap != nil {
		objects = append(objects, s.ConfigMap)
	}
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	namespace.Name = s.Cache.Namespace
	for _, o := range s.Live {
		object := o.(client.Object)
		if ns, given := object.(*corev1.Namespace); given {
			namespace = ns
			continue
		}
		objects = append(objects, object)
	}
	return append(objects, namespace)
}
