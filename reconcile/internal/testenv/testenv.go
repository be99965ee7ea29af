// Package testenv gives tests a real control plane. It runs etcd, the API server
// and the controllers of testdata/controlplane, with the ClusteredCache CRD.
//
// A kubelet is missing. The supervisor of the control plane marks pods as Running
// and Ready instead. Its conventions are in testdata/controlplane/README.md.
package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "example.com/clusteredcache/api/v1"
)

// Root returns the root of the module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Env is a running control plane.
type Env struct {
	// Kubeconfig is the path of a kubeconfig with full rights.
	Kubeconfig string
	// Assets is the directory that contains kubectl.
	Assets string
	Config *rest.Config
	Client client.Client

	dir   string
	up    *exec.Cmd
	stdin io.Closer
}

// Start starts a control plane. The flags are passed to its supervisor. With
// --controller-manager=false no controller runs, and with --crds= the CRD is
// missing.
//
// If necessary, Start first builds the control plane. That takes minutes, and is
// announced on standard error.
func Start(flags ...string) (*Env, error) {
	build := exec.Command("sh", filepath.Join(Root(), "testdata", "controlplane", "build.sh"))
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("building the control plane: %w", err)
	}
	e := &Env{Assets: strings.TrimSpace(string(out))}
	if e.dir, err = os.MkdirTemp("", "clusteredcache-test-"); err != nil {
		return nil, err
	}
	args := append([]string{"--assets", e.Assets, "--dir", e.dir, "--remove", "--until-stdin-closes",
		"--crds=" + filepath.Join(Root(), "deploy", "crd")}, flags...)
	e.up = exec.Command(filepath.Join(e.Assets, "up"), args...)
	e.up.Stderr = os.Stderr
	if err := e.start(); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// start starts the supervisor, and waits until the control plane is ready.
func (e *Env) start() error {
	var err error
	if e.stdin, err = e.up.StdinPipe(); err != nil {
		return err
	}
	stdout, err := e.up.StdoutPipe()
	if err != nil {
		return err
	}
	if err := e.up.Start(); err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	path, ok := strings.CutPrefix(strings.TrimSpace(line), "ready KUBECONFIG=")
	if !ok {
		return fmt.Errorf("the control plane did not come up (%q): %w", line, err)
	}
	e.Kubeconfig = path
	if e.Config, err = clientcmd.BuildConfigFromFlags("", path); err != nil {
		return err
	}
	e.Config.QPS = -1
	scheme := clientscheme.Scheme
	if err := v1.AddToScheme(scheme); err != nil {
		return err
	}
	e.Client, err = client.New(e.Config, client.Options{Scheme: scheme})
	return err
}

// Program builds clusteredcache into a temporary directory of the test and returns
// its path. The flags are passed to go build.
func Program(t testing.TB, flags ...string) string {
	t.Helper()
	path, err := build(t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds clusteredcache into dir and returns its path.
func build(dir string, flags ...string) (string, error) {
	path := filepath.Join(dir, "clusteredcache")
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", path}, flags, []string{"./cmd/clusteredcache"})...)
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
}

// Stop stops the control plane and waits until it has ended.
func (e *Env) Stop() error {
	if e.stdin != nil {
		_ = e.stdin.Close()
	}
	err := e.up.Wait()
	_ = os.Remove(e.dir)
	return err
}

// MainWithProgram does what Main does. It also builds clusteredcache once for all
// tests of the package, and stores its path in *program.
func MainWithProgram(m *testing.M, env **Env, program *string) int {
	dir, err := os.MkdirTemp("", "clusteredcache-bin-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		*program, err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return Main(m, env)
}

// Main runs the tests of a package with one control plane in *env.
func Main(m *testing.M, env **Env, flags ...string) int {
	// The clients complain if no logger is set. The API server warns about many
	// things that the tests do on purpose.
	log.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	e, err := Start(flags...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*env = e
	code := m.Run()
	if err := e.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		return 1
	}
	return code
}

// Namespace creates a namespace for the test. At the end of the test it is deleted,
// without waiting.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client.Create(context.Background(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Client.Delete(context.Background(), ns) })
	return ns.Name
}

// Eventually polls until so returns true, for at most 30 seconds. The argument what
// describes the condition.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
