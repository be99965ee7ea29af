package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile/kube"
)

// controlPlane is a running API server.
type controlPlane struct {
	kubeconfig string
	client     client.Client
	proxy      *proxy
	version    string
}

// onControlPlane runs f on a new control plane and ends the control plane after it.
func (b *bench) onControlPlane(ctx context.Context, f func(*controlPlane) error) (err error) {
	dir, err := os.MkdirTemp(b.dir, "plane-")
	if err != nil {
		return err
	}
	// The supervisor ends when its standard input ends, so also when we are killed.
	// It stops the API server before etcd.
	up := exec.Command(filepath.Join(b.assets, "up"), "--assets", b.assets, "--dir", dir, "--remove", "--until-stdin-closes",
		"--controller-manager=false", "--crds", filepath.Join(b.root, "deploy", "crd"))
	up.Stderr = os.Stderr
	stdin, err := up.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := up.StdoutPipe()
	if err != nil {
		return err
	}
	if err := up.Start(); err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, stdin.Close(), up.Wait()) }()
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	kubeconfig, ok := strings.CutPrefix(strings.TrimSpace(line), "ready KUBECONFIG=")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !ok:
		return errors.New("the control plane did not come up")
	}
	c, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	defer c.proxy.close()
	err = f(c)
	if ctx.Err() != nil {
		return ctx.Err() // whatever failed, failed because of it
	}
	return err
}

func connect(kubeconfig string) (*controlPlane, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // means no limit
	c := &controlPlane{kubeconfig: kubeconfig}
	if c.client, err = client.New(config, client.Options{Scheme: kube.Scheme()}); err != nil {
		return nil, err
	}
	if c.version, err = serverVersion(config); err != nil {
		return nil, err
	}
	c.proxy, err = startProxy(config, filepath.Join(filepath.Dir(kubeconfig), "..", filepath.Base(filepath.Dir(kubeconfig))+"-proxy.kubeconfig"))
	return c, err
}

func serverVersion(config *rest.Config) (string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	v, err := d.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking for the server's version: %w", err)
	}
	return v.GitVersion, nil
}
