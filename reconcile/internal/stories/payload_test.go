package stories_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// What is sent holds intended keys only: no null, no status on a main
// endpoint, nothing that Go's zero values add. The finalizer takes
// nothing of the spec.
func TestPayloads(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.Engine, c.Spec.Image = v1.EngineCustom, "example.com/cache"
		c.Spec.Storage = &v1.StorageSpec{Size: quantity("1Gi")}
	})
	bodies := map[string]map[string]any{}
	c := productClient(t, func(_ int, r *http.Request) {
		if r.Method != http.MethodPatch {
			return
		}
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(raw)))
		var body map[string]any
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		path := strings.Split(r.URL.Path, "/")
		bodies[strings.Join(path[len(path)-2:], "/")] = body
	})
	runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})

	for at, body := range bodies {
		if at != "cache/status" {
			if _, ok := body["status"]; ok {
				t.Errorf("%s: a status on the main endpoint", at)
			}
		}
		wantNoEmpty(t, at, body)
	}
	for _, at := range []string{"statefulsets/cache", "services/cache", "services/nodes-cache", "poddisruptionbudgets/cache", "clusteredcaches/cache", "cache/status"} {
		if bodies[at] == nil {
			t.Errorf("nothing was sent to %s", at)
		}
	}
	if _, ok := bodies["clusteredcaches/cache"]["spec"]; ok {
		t.Error("the finalizer takes the spec")
	}
}

// wantNoEmpty refuses null, creationTimestamp and empty objects; status has
// zeros and empty strings on purpose.
func wantNoEmpty(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		t.Errorf("%s is null", at)
	case map[string]any:
		if len(v) == 0 {
			t.Errorf("%s is empty", at)
		}
		for key, item := range v {
			if key == "creationTimestamp" {
				t.Errorf("%s has %s", at, key)
			}
			wantNoEmpty(t, at+"."+key, item)
		}
	case []any:
		for i, item := range v {
			wantNoEmpty(t, fmt.Sprintf("%s[%d]", at, i), item)
		}
	}
}

// An aggregated API that is down concerns nobody here: there is no discovery.
// Nothing but lists is asked of a converged fleet.
func TestRequestsOfAConvergedPass(t *testing.T) {
	broken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1.broken.example.com"},
		"spec": map[string]any{"group": "broken.example.com", "version": "v1beta1", "insecureSkipTLSVerify": true,
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"service": map[string]any{"namespace": "default", "name": "nothing"}},
	}}
	mustCreate(t, broken)
	t.Cleanup(func() { _ = env.Client.Delete(t.Context(), broken) })
	ns := env.Namespace(t)
	for i := range 5 {
		create(t, ns, fmt.Sprintf("cache-%d", i))
	}
	settle(t, ns)
	var requests []string
	c := productClient(t, func(_ int, r *http.Request) { requests = append(requests, r.Method+" "+r.URL.Path) })
	f := runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 4})
	if f.Total != 5 || len(f.Caches) != 0 {
		t.Errorf("%+v", f)
	}
	slices.Sort(requests)
	want := []string{
		"GET /api/v1/namespaces/" + ns + "/services",
		"GET /api/v1/namespaces/" + ns + "/services",
		"GET /apis/apps/v1/namespaces/" + ns + "/statefulsets",
		"GET /apis/cache.example.com/v1/namespaces/" + ns + "/clusteredcaches",
		"GET /apis/policy/v1/namespaces/" + ns + "/poddisruptionbudgets",
	}
	if diff := cmpDiff(want, requests); diff != "" {
		t.Error(diff)
	}
}

// By name, one cache is looked at, and an unknown name is that name's failure.
func TestNames(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "a")
	create(t, ns, "b")
	f := runWith(t, productClient(t, nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}, Names: []string{"a", "nosuch", "a"}}})
	if f.Total != 2 {
		t.Errorf("%d caches", f.Total)
	}
	wantVerdict(t, f, "nosuch", model.NotDone, v1.ReasonNotFound)
	if v := verdict(t, f, "a"); v.State != model.Progressing {
		t.Errorf("%+v", v)
	}
	if c := get(t, ns, "b", &v1.ClusteredCache{}); len(c.Finalizers) != 0 {
		t.Error("b was not asked for")
	}
}

// A dry-run client makes the same calls and changes nothing.
func TestDryRunChangesNothing(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "new")
	old := create(t, ns, "old")
	runWith(t, productClient(t, nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}, Names: []string{"old"}}, Wait: true, Timeout: 60e9})
	update(t, old, func(c *v1.ClusteredCache) { c.Spec.Size = 5 })
	before := versions(t, ns)
	f := runWith(t, client.NewDryRunClient(productClient(t, nil)), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}})
	if diff := cmpDiff(before, versions(t, ns)); diff != "" {
		t.Error(diff)
	}
	if got := changesOf(f, "old", "StatefulSet"); len(got) != 1 || got[0].Path != "spec.replicas" {
		t.Errorf("old: %+v", got)
	}
	if v := verdict(t, f, "new"); v.State != model.Progressing {
		t.Errorf("new: %+v", v)
	}
}
