package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
)

// The samples with hooks are taken by the API server as they stand, in a namespace with
// the restricted Pod Security profile, and their hooks' pods too.
func TestSamples(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Label("pod-security.kubernetes.io/enforce", "restricted")
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "deploy", "samples", "deletion-*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	strict := client.WithFieldValidation(w.Env.Client, "Strict")
	hooks := 0
	for _, file := range files {
		for _, u := range manifests(t, file) {
			u.SetNamespace(w.NS)
			if err := strict.Create(t.Context(), u); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
	}
	w.Settle()
	list := &v1.ClusteredCacheList{}
	w.List(list)
	jobs := w.LogJobs()
	for i := range list.Items {
		hooks += len(list.Items[i].Spec.Deletion.Hooks)
		w.Named(list.Items[i].Name).Edit(`spec: {deletion: {drainSeconds: 0}}`)
		w.Named(list.Items[i].Name).Remove()
	}
	for _, c := range w.Settle().Caches {
		if c.Verdict.State != model.Settled || strings.Contains(c.Verdict.Message, "skipped") {
			t.Errorf("%s: %+v", c.Name, c.Verdict)
		}
	}
	if made := jobs.Made(); len(made) != hooks {
		t.Errorf("%d hooks, Jobs %v", hooks, made)
	}
}

// The answer of the register is the exit status of the hook: gone already is
// success, refusals and faults are not.
func TestDeregistrationSample(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the sample's script needs curl")
	}
	c := &v1.ClusteredCache{}
	objects := manifests(t, filepath.Join(testenv.Root(), "deploy", "samples", "deletion-deregister.yaml"))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[1].Object, c); err != nil {
		t.Fatal(err)
	}
	hook := c.Spec.Deletion.Hooks[0]
	for status, succeeds := range map[int]bool{200: true, 204: true, 404: true, 410: true, 401: false, 403: false, 500: false, 503: false} {
		register := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodDelete || r.URL.Path != "/shop/c" {
				t.Errorf("asked: %s %s", r.Method, r.URL)
			}
			w.WriteHeader(status)
		}))
		run := exec.Command(hook.Command[0], append(hook.Command[1:], hook.Args...)...)
		run.Env = append(os.Environ(), "REGISTER_URL="+register.URL, "REGISTER_TOKEN=t", "CACHE_NAMESPACE=shop", "CACHE_NAME=c", "CACHE_UID=u")
		if out, err := run.CombinedOutput(); (err == nil) != succeeds {
			t.Errorf("%d: %v: %s", status, err, out)
		}
		register.Close()
	}
}

func manifests(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &u.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, u)
	}
	return objects
}
