package main

import (
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/clusteredcache/reconcile/kube"
)

// connectionFlags are the connection flags of client-go, without --namespace.
type connectionFlags struct {
	kubeconfig string
	overrides  *clientcmd.ConfigOverrides
}

func (c *connectionFlags) bind(fs *pflag.FlagSet) {
	c.overrides = &clientcmd.ConfigOverrides{}
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use (default: KUBECONFIG, else the pod's ServiceAccount, else ~/.kube/config)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	// passFlags has a repeatable --namespace.
	names.ContextOverrideFlags.Namespace.LongName = ""
	names.Timeout.Default = kube.RequestTimeout.String()
	clientcmd.BindOverrideFlags(c.overrides, fs, names)
}

// load finds the cluster that the flags and the environment choose.
func (c connectionFlags) load() (*kube.Target, error) {
	t, err := kube.Load(c.overrides, c.kubeconfig)
	if err != nil {
		return nil, err
	}
	t.Config.UserAgent = "clusteredcache/" + version
	return t, nil
}
