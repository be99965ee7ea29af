package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	startTimeout = 2 * time.Minute // for each step; a loaded machine needs a few seconds
	pollInterval = 50 * time.Millisecond
	portAttempts = 5
	lockFile     = "lock"
)

// cluster is the running control plane.
type cluster struct {
	options
	kubeconfig string
	lock       *os.File
	token      string
	client     kubernetes.Interface
	components []*component // in the order of their start
	died       chan *component
	stopPods   func() // ends the marking of pods
}

// newCluster takes the state directory for itself and writes the credentials.
func newCluster(o options) (*cluster, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(o.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("another control plane runs in %s: %w", o.dir, err)
	}
	c := &cluster{
		options:    o,
		kubeconfig: filepath.Join(o.dir, kubeconfigFile),
		lock:       lock,
		died:       make(chan *component, 4+portAttempts), // every component can report without a reader
		stopPods:   func() {},
	}
	if c.token, err = writeCredentials(o.dir); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// start starts everything and returns once the cluster can be used.
func (c *cluster) start(ctx context.Context) error {
	if err := c.launch("etcd", etcdArgs()...); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if err := c.applyCRDs(ctx); err != nil {
		return err
	}
	if c.scheduler {
		if err := c.launch("kube-scheduler", schedulerArgs()...); err != nil {
			return err
		}
	}
	if !c.controllerManager {
		return c.waitFor(ctx, "namespace default", func(ctx context.Context) error {
			_, err := c.client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			return err
		})
	}
	if err := c.launch("kube-controller-manager", controllerManagerArgs(c.controllers)...); err != nil {
		return err
	}
	podsCtx, cancel := context.WithCancel(context.Background())
	c.stopPods = cancel
	go markPods(podsCtx, c.client, c.options)
	// Pods cannot be created before their ServiceAccount.
	return c.waitFor(ctx, "ServiceAccount default", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (c *cluster) launch(name string, args ...string) error {
	child, err := startComponent(filepath.Join(c.assets, name), c.dir, c.died, args...)
	if err != nil {
		return err
	}
	c.components = append(c.components, child)
	return nil
}

// startAPIServer waits until the API server is ready. Between finding a free port
// and using it somebody else may take it, so a clash is tried again with another.
func (c *cluster) startAPIServer(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err := writeKubeconfig(c.dir, c.token, port); err != nil {
			return err
		}
		if err := c.launch("kube-apiserver", apiServerArgs(port, c.options)...); err != nil {
			return err
		}
		err = c.waitFor(ctx, "the API server", c.apiServerReady)
		if err == nil {
			return nil
		}
		last := len(c.components) - 1
		if attempt == portAttempts || ctx.Err() != nil || !c.components[last].portTaken() {
			return err
		}
		c.components[last].stop()
		c.components = c.components[:last]
	}
}

// apiServerReady sets the client on the way: the certificate it trusts exists
// only once the API server has made it.
func (c *cluster) apiServerReady(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c.client = client
	return client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// applyCRDs makes custom resources known before the garbage collector starts: it
// looks for new kinds only every 30 s, and until then leaves their dependents.
func (c *cluster) applyCRDs(ctx context.Context) error {
	if c.crds == "" {
		return nil
	}
	for _, args := range [][]string{
		// apply, because the directory may be that of an earlier run.
		{"apply", "--server-side", "--force-conflicts", "--filename", c.crds},
		{"wait", "--for=condition=Established", "--timeout=30s", "--filename", c.crds},
	} {
		args = append([]string{"--kubeconfig", c.kubeconfig}, args...)
		out, err := exec.CommandContext(ctx, filepath.Join(c.assets, "kubectl"), args...).CombinedOutput()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("apply %s: %w: %s", c.crds, err, out)
		}
	}
	return nil
}

// waitFor calls ready until it returns no error, a component dies or time is up.
func (c *cluster) waitFor(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case dead := <-c.died:
			return dead.failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last answer: %w)", what, ctx.Err(), err)
		case <-time.After(pollInterval):
		}
	}
}

// wait returns when ctx is done, or with an error when a component dies.
func (c *cluster) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case dead := <-c.died:
		return dead.failure()
	}
}

// stop ends the components in the reverse order of their start. The API server
// must go before etcd: without etcd it never ends by itself.
func (c *cluster) stop() {
	c.stopPods()
	for i := len(c.components) - 1; i >= 0; i-- {
		c.components[i].stop()
	}
}

// close gives the state directory free and, with --remove, removes what is ours.
func (c *cluster) close() {
	defer func() { _ = c.lock.Close() }()
	if !c.remove {
		return
	}
	for _, name := range []string{
		etcdDir, etcdSocket, certDir, serviceAccountKey, tokenFile, kubeconfigFile, lockFile,
		"etcd.log", "kube-apiserver.log", "kube-controller-manager.log", "kube-scheduler.log",
	} {
		if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
			fmt.Fprintln(os.Stderr, "up:", err)
		}
	}
	_ = os.Remove(c.dir) // fails, rightly, if something else is in it
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
