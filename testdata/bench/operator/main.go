// operator is a typical Kubernetes operator for ClusteredCaches. Its
// controller-runtime manager keeps all caches and children in memory. For each cache
// it gets the children, compares what matters to it (two fields of the StatefulSet),
// and updates what differs.
//
//	operator KUBECONFIG NUMBER
//
// It ends when it has reconciled NUMBER caches once: that is the cost of restarting
// an operator. It leaves out status, finalizers and everything else that would cost
// more.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/resources"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: operator KUBECONFIG NUMBER")
	}
	number, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  kube.Scheme(),
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	r := &reconciler{client: manager.GetClient(), number: number, seen: map[client.ObjectKey]bool{}, end: make(chan error, 1)}
	if err := ctrl.NewControllerManagedBy(manager).
		For(&v1.ClusteredCache{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(r); err != nil {
		return err
	}
	go func() { r.finish(manager.Start(ctrl.SetupSignalHandler())) }()
	return <-r.end
}

type reconciler struct {
	client client.Client
	number int

	mu   sync.Mutex
	seen map[client.ObjectKey]bool
	end  chan error
}

// Reconcile compares one cache's children. The fleet is converged, so an update is an
// error of the benchmark.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cache := &v1.ClusteredCache{}
	if err := r.client.Get(ctx, request.NamespacedName, cache); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	nodes := client.ObjectKey{Namespace: request.Namespace, Name: resources.NodesServiceName(request.Name)}
	sts := &appsv1.StatefulSet{}
	for _, child := range []struct {
		key    client.ObjectKey
		object client.Object
	}{
		{request.NamespacedName, sts},
		{request.NamespacedName, &corev1.Service{}},
		{nodes, &corev1.Service{}},
		{request.NamespacedName, &policyv1.PodDisruptionBudget{}},
	} {
		if err := r.client.Get(ctx, child.key, child.object); err != nil {
			return ctrl.Result{}, err
		}
	}
	container := &sts.Spec.Template.Spec.Containers[0]
	if image := resources.Image(cache); *sts.Spec.Replicas != cache.Spec.Size || container.Image != image {
		*sts.Spec.Replicas, container.Image = cache.Spec.Size, image
		if err := r.client.Update(ctx, sts); err != nil {
			return ctrl.Result{}, err
		}
		r.finish(fmt.Errorf("there was something to update in %s", request))
	}
	r.done(request.NamespacedName)
	return ctrl.Result{}, nil
}

func (r *reconciler) done(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[key] = true
	if len(r.seen) == r.number {
		r.finish(nil)
	}
}

// finish ends the process. Only the first call counts.
func (r *reconciler) finish(err error) {
	select {
	case r.end <- err:
	default:
	}
}
