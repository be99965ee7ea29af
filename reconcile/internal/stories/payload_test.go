package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

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
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {engine: Custom, image: "example.com/cache", storage: {size: 1Gi}}`)
	bodies := map[string]map[string]any{}
	c := w.Product(func(_ int, r *http.Request) {
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
	w.Run(c, reconcile.Options{Concurrency: 1})

	for at, body := range bodies {
		if at != "cache/status" {
			if _, ok := body["status"]; ok {
				t.Errorf("%s: a status on the main endpoint", at)
			}
		}
		wantNoEmpty(w, at, body)
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
func wantNoEmpty(w *world.World, at string, v any) {
	w.Helper()
	switch v := v.(type) {
	case nil:
		w.Errorf("%s is null", at)
	case map[string]any:
		if len(v) == 0 {
			w.Errorf("%s is empty", at)
		}
		for key, item := range v {
			if key == "creationTimestamp" {
				w.Errorf("%s has %s", at, key)
			}
			wantNoEmpty(w, at+"."+key, item)
		}
	case []any:
		for i, item := range v {
			wantNoEmpty(w, fmt.Sprintf("%s[%d]", at, i), item)
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
	w := world.Shared(t) // not at the same time as others: namespaces are not collected meanwhile
	w.CreateGlobal(broken)
	for i := range 5 {
		w.Named(fmt.Sprintf("cache-%d", i)).Cache()
	}
	w.Settle()
	var requests []string
	c := w.Product(func(_ int, r *http.Request) { requests = append(requests, r.Method+" "+r.URL.Path) })
	f := w.Run(c, reconcile.Options{Concurrency: 4})
	if f.Total != 5 || len(f.Caches) != 0 {
		t.Errorf("%+v", f)
	}
	slices.Sort(requests)
	want := []string{
		"GET /api/v1/namespaces/" + w.NS + "/services",
		"GET /api/v1/namespaces/" + w.NS + "/services",
		"GET /apis/apps/v1/namespaces/" + w.NS + "/statefulsets",
		"GET /apis/cache.example.com/v1/namespaces/" + w.NS + "/clusteredcaches",
		"GET /apis/policy/v1/namespaces/" + w.NS + "/poddisruptionbudgets",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Error(diff)
	}
}

// By name, one cache is looked at, and an unknown name is that name's failure.
func TestNames(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Named("a").Cache()
	w.Named("b").Cache()
	f := w.Run(w.Product(nil), reconcile.Options{Scope: observe.Scope{Names: []string{"a", "nosuch", "a"}}})
	if f.Total != 2 {
		t.Errorf("%d caches", f.Total)
	}
	f.Of("nosuch").Wants(model.NotDone, v1.ReasonNotFound)
	if v := f.Of("a").Verdict; v.State != model.Progressing {
		t.Errorf("%+v", v)
	}
	if c := w.Named("b").Stored(); len(c.Finalizers) != 0 {
		t.Error("b was not asked for")
	}
}

// A dry-run client makes the same calls and changes nothing.
func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Named("new").Cache()
	old := w.Named("old").Cache()
	w.Run(w.Product(nil), reconcile.Options{Scope: observe.Scope{Names: []string{"old"}}, Wait: true, Timeout: 60e9})
	w.Named(old.Name).Edit(`spec: {size: 5}`)
	before := w.Versions()
	f := w.Run(client.NewDryRunClient(w.Product(nil)), reconcile.Options{})
	if diff := cmp.Diff(before, w.Versions()); diff != "" {
		t.Error(diff)
	}
	if got := f.Of("old").Changes("StatefulSet"); len(got) != 1 || got[0].Path != "spec.replicas" {
		t.Errorf("old: %+v", got)
	}
	if v := f.Of("new").Verdict; v.State != model.Progressing {
		t.Errorf("new: %+v", v)
	}
}
