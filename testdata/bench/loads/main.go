// loads runs what the product is compared with. Each load is its own process, so that
// its cost is measured in the same way:
//
//	loads lists      KUBECONFIG RECORDING             the recorded lists, decoded and thrown away
//	loads create     KUBECONFIG RECORDING NAMESPACE   the recorded writes of one new cache, for all caches of a namespace
//	loads perobject  KUBECONFIG CHILDREN CONCURRENCY  one GET and one dry-run apply for each object of a manifest
//
// RECORDING has the requests of the product. So pages, selectors and bodies are the
// same as the product's.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/clusteredcache/reconcile/kube"
)

var loads = map[string]struct {
	arguments int
	run       func(ctx context.Context, to target, args []string) error
}{
	"lists":     {1, runLists},
	"create":    {2, runCreate},
	"perobject": {2, runPerObject},
}

// target is the API server.
type target struct {
	config *rest.Config
	client client.Client
}

func main() {
	log.SetLogger(logr.Discard())
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "loads:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: loads lists|create|perobject KUBECONFIG ARGUMENT...")
	}
	load, ok := loads[args[0]]
	if !ok || len(args) != 2+load.arguments {
		return fmt.Errorf("there is no load of this form: %q", args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return err
	}
	config.QPS = -1 // means no limit, as in the product
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		return err
	}
	return load.run(context.Background(), target{config: config, client: c}, args[2:])
}
