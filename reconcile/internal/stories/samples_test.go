package stories_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
	ns := env.Namespace(t)
	patch(t, &corev1.Namespace{ObjectMeta: meta("", ns)}, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "deploy", "samples", "deletion-*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	strict := client.WithFieldValidation(env.Client, "Strict")
	hooks := 0
	for _, file := range files {
		for _, u := range manifests(t, file) {
			u.SetNamespace(ns)
			if err := strict.Create(t.Context(), u); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
	}
	settle(t, ns)
	list := &v1.ClusteredCacheList{}
	if err := env.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	jobs := logJobs(t, ns)
	for i := range list.Items {
		hooks += len(list.Items[i].Spec.Deletion.Hooks)
		update(t, &list.Items[i], func(c *v1.ClusteredCache) { c.Spec.Deletion.DrainSeconds = 0 })
		remove(t, ns, list.Items[i].Name)
	}
	for _, c := range settle(t, ns).Caches {
		if c.Verdict.State != model.Settled || strings.Contains(c.Verdict.Message, "skipped") {
			t.Errorf("%s: %+v", c.Name, c.Verdict)
		}
	}
	if made := jobs.made(t, ns); len(made) != hooks {
		t.Errorf("%d hooks, Jobs %v", hooks, made)
	}
}

// The answer of the register is the exit status of the hook: gone already is
// success, refusals and faults are not.
func TestDeregistrationSample(t *testing.T) {
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
