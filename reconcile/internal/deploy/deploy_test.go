package deploy

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"example.com/clusteredcache/reconcile/internal/testenv"
)

var (
	env     *testenv.Env // without the CRD: the manifests bring it
	program string       // path of the built program
)

func TestMain(m *testing.M) { os.Exit(testenv.MainWithProgram(m, &env, &program)) }

// result is what a command said and how it ended.
type result struct {
	stdout, stderr string
	status         int
}

// run runs a program with the rights of the administrator.
func run(t *testing.T, name string, args ...string) result {
	t.Helper()
	cmd := exec.Command(name, args...)
	return finish(t, cmd)
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "KUBECONFIG="+env.Kubeconfig)
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func clusteredcache(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, program, args...)
}

// kubectl fails the test when kubectl fails.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	r := run(t, filepath.Join(env.Assets, "kubectl"), args...)
	if r.status != 0 {
		t.Fatalf("kubectl %s: %s", strings.Join(args, " "), r.stderr)
	}
	return r.stdout
}

var built = map[string]string{}

// kustomize builds a copy of deploy with components.
func kustomize(t *testing.T, components ...string) string {
	t.Helper()
	key := strings.Join(components, " ")
	if manifests := built[key]; manifests != "" {
		return manifests
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(filepath.Join(testenv.Root(), "deploy"))); err != nil {
		t.Fatal(err)
	}
	lines := []string{"resources: [../deploy]", "components:"}
	for _, c := range components {
		lines = append(lines, "- ../deploy/components/"+c)
	}
	overlay := filepath.Join(dir, "overlay")
	write(t, filepath.Join(overlay, "kustomization.yaml"), strings.Join(lines, "\n"))
	built[key] = kubectl(t, "kustomize", overlay)
	return built[key]
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Root(), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// objects are the documents of manifests.
func objects(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// one is the only object of a kind, put into o.
func one(t *testing.T, manifests, kind string, o any) {
	t.Helper()
	found := 0
	for _, u := range objects(t, manifests) {
		if u.GetKind() != kind {
			continue
		}
		found++
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, o, true); err != nil {
			t.Fatal(err)
		}
	}
	if found != 1 {
		t.Fatalf("%d of kind %s", found, kind)
	}
}
