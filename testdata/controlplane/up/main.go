// up runs a Kubernetes control plane without nodes: etcd, the API server and the
// controller manager as child processes on the loopback interface. It marks pods
// Running and Ready itself (see pods.go), for want of a kubelet.
//
// It prints one line, "ready KUBECONFIG=<path>", and then runs until it is told
// to stop; nothing it started outlives it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// defaultControllers is what workloads without nodes need. A short list starts
// faster than all controllers do and leaves the machine to the tests.
var defaultControllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"horizontal-pod-autoscaler-controller",
	"job-controller",
	"namespace-controller",
	// Without it a deleted claim keeps its finalizer, and so does its namespace.
	"persistentvolumeclaim-protection-controller",
	"replicaset-controller",
	"serviceaccount-controller",
	"statefulset-controller",
}

type options struct {
	assets            string
	dir               string
	controllers       string
	crds              string
	admissionPlugins  string
	authorizer        string
	controllerManager bool
	scheduler         bool
	podDelay          time.Duration
	untilStdinCloses  bool
	remove            bool
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("up", flag.ExitOnError)
	f.StringVar(&o.assets, "assets", "", "directory with etcd, kube-apiserver, kube-controller-manager and kubectl")
	f.StringVar(&o.dir, "dir", "", "directory for the kubeconfig, keys, data and logs; made if it does not exist")
	f.StringVar(&o.controllers, "controllers", strings.Join(defaultControllers, ","), "controllers to run, as kube-controller-manager takes them")
	f.StringVar(&o.crds, "crds", "", "file or directory of CustomResourceDefinitions to apply before the controllers start")
	f.StringVar(&o.admissionPlugins, "admission-plugins", "", "admission plugins to enable besides the default ones, as kube-apiserver takes them")
	f.StringVar(&o.authorizer, "authorizer", "", "kubeconfig of a webhook that the API server asks about rights before it goes by RBAC")
	f.BoolVar(&o.controllerManager, "controller-manager", true, "run the controllers and mark pods; false: only etcd and the API server")
	f.BoolVar(&o.scheduler, "scheduler", false, "run kube-scheduler too; there are no nodes but those you create")
	f.DurationVar(&o.podDelay, "pod-delay", 200*time.Millisecond, "time between seeing a pod and marking it")
	f.BoolVar(&o.untilStdinCloses, "until-stdin-closes", false, "stop at the end of standard input, that is, when whoever started up has died")
	f.BoolVar(&o.remove, "remove", false, "remove what was made in --dir in the end, and --dir itself if nothing else is in it")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("parse flags: %w", err)
	}
	if o.assets == "" || o.dir == "" || f.NArg() > 0 {
		return o, fmt.Errorf("usage: up --assets DIR --dir STATE [FLAG...], see up -help")
	}
	// Absolute, because children run in --dir and the kubeconfig is read from anywhere.
	for _, path := range []*string{&o.assets, &o.dir, &o.crds, &o.authorizer} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, fmt.Errorf("resolve %s: %w", *path, err)
		}
		*path = absolute
	}
	return o, nil
}

func run(o options) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer cancel()
	// Whoever reads our output may die first. A write to it must then fail, not
	// kill us in the middle of stopping, which is what an uncaught SIGPIPE does.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if o.untilStdinCloses {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}

	c, err := newCluster(o)
	if err != nil {
		return err
	}
	defer c.close()
	if err = c.start(ctx); err == nil {
		fmt.Printf("ready KUBECONFIG=%s\n", c.kubeconfig)
		err = c.wait(ctx)
	}
	c.stop()
	if errors.Is(err, context.Canceled) {
		return nil // told to stop before the cluster was ready
	}
	return err
}
