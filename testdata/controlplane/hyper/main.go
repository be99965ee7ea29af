// hyper is etcd and the Kubernetes programs in one binary, like busybox: the
// name it is called by says which program it is. The programs share nearly all
// their code, so one link and one file replace seven.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs maps a name to what runs it. Commands are made only when they are
// asked for: making one registers flags and metrics in process-wide tables.
var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl":                 runKubectl,
}

func main() {
	name := filepath.Base(os.Args[0])
	// Called by another name, the first argument chooses: hyper kubectl get pods.
	if programs[name] == nil && len(os.Args) > 1 {
		name, os.Args = os.Args[1], os.Args[1:]
	}
	program := programs[name]
	if program == nil {
		fmt.Fprintln(os.Stderr, "usage: hyper", strings.Join(slices.Sorted(maps.Keys(programs)), "|"), "[ARGUMENT...]")
		os.Exit(2)
	}
	program()
}

func run(cmd *cobra.Command) {
	os.Exit(cli.Run(cmd))
}

// runKubectl differs from run in that kubectl prints its own errors and chooses
// its own exit codes (for example 1 for a difference found by kubectl diff).
func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
