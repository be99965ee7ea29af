package observe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/plan"
	"example.com/clusteredcache/reconcile/report"
	"example.com/clusteredcache/reconcile/status"
)

// FuzzListedCache: whatever is stored in a cache, beside what every object has,
// it is planned or said not to decode, and the caches before and after it in
// the list are met all the same.
func FuzzListedCache(f *testing.F) {
	paths, err := filepath.Glob("../../testdata/scenarios/*/cache.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatal(paths, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		raw, err := yaml.YAMLToJSON(content)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, seed := range []string{
		`{"spec":[]}`, `{"spec":{"size":"x"}}`, `{"spec":{"size":1e40}}`, `{"status":{"conditions":[null,{}]}}`, `{"spec":{"podTemplate":[]}}`,
		`{"spec":{"version":"1","deletion":{"hooks":[{},{}]}}}`, `{"metadata":{"annotations":{"cache.example.com/draining-since":"x"},"deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
		`{"metadata":{"managedFields":[{"manager":"clusteredcache","operation":"Apply","fieldsV1":[]}]}}`, `{"spec":{"resources":{"limits":{"memory":"1e999999999"}}}}`,
		`{"spec":{"rollout":{"progressDeadlineSeconds":-2147483648,"minReadySeconds":2147483647}}}`, `{"spec":{"storage":{"size":""}}}`,
	} {
		f.Add([]byte(seed))
	}
	server := &onePage{}
	c, err := kube.NewClient(&kube.Target{Config: &rest.Config{Host: "http://server", Transport: server, QPS: -1}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		object := map[string]any{}
		if json.Unmarshal(raw, &object) != nil {
			return // cannot be stored
		}
		server.fill(t, object)
		wantAllMet(t, c)
	})
}

// wantAllMet walks the list as a pass does, without the writes.
func wantAllMet(t *testing.T, c client.Reader) {
	t.Helper()
	var met []string
	var fleet model.Fleet
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	err := observe.NewReader(c).Fleet(t.Context(), observe.Scope{}, func(item observe.Item) bool {
		item.Input.Now = now
		met = append(met, item.Key.Name)
		if item.Err != nil {
			if !errors.Is(item.Err, observe.ErrUndecodable) || item.Key.Name != "b" {
				t.Errorf("%s: %v", item.Key, item.Err)
			}
			return true
		}
		p := plan.For(item.Input)
		_, verdict := status.For(item.Input, p, nil)
		fleet.Caches = append(fleet.Caches, model.CacheReport{Namespace: item.Key.Namespace, Name: item.Key.Name, Plan: p, Verdict: verdict})
		return true
	})
	if err != nil || strings.Join(met, " ") != "a b c" {
		t.Errorf("met %v, %v", met, err)
	}
	for _, write := range []func() error{
		func() error { return report.Text(io.Discard, fleet, report.TextOptions{Verbose: true}) },
		func() error { return report.JSON(io.Discard, fleet, report.JSONOptions{Preview: true}) },
		func() error { return report.Markdown(io.Discard, fleet, report.MarkdownOptions{}) },
	} {
		if err := write(); err != nil {
			t.Error(err)
		}
	}
}

// onePage answers every list of caches with the same page, and every other with
// an empty one.
type onePage struct{ body []byte }

// fill makes the page of object between two that nothing is wrong with. What
// the API server sees to in any object is put right.
func (s *onePage) fill(t *testing.T, object map[string]any) {
	t.Helper()
	page := map[string]any{"apiVersion": "cache.example.com/v1", "kind": "ClusteredCacheList", "metadata": map[string]any{"resourceVersion": "1"}}
	var items []any
	for _, name := range []string{"a", "b", "c"} {
		item := map[string]any{"spec": map[string]any{"version": "1", "size": 1}}
		metadata := map[string]any{}
		if name == "b" {
			item = object
			given, _ := object["metadata"].(map[string]any)
			for k, v := range stored(given) {
				metadata[k] = v
			}
		}
		metadata["name"], metadata["namespace"], metadata["uid"] = name, "ns", "uid-"+name
		item["apiVersion"], item["kind"], item["metadata"] = "cache.example.com/v1", "ClusteredCache", metadata
		items = append(items, item)
	}
	page["items"] = items
	var err error
	if s.body, err = json.Marshal(page); err != nil {
		t.Fatal(err)
	}
}

// stored is what of metadata can be there: its types are known to the server.
func stored(metadata map[string]any) map[string]any {
	kept := map[string]any{}
	for _, field := range []string{"annotations", "labels", "finalizers", "deletionTimestamp", "managedFields", "ownerReferences", "generation"} {
		alone, err := json.Marshal(map[string]any{field: metadata[field]})
		if err == nil && metadata[field] != nil && json.Unmarshal(alone, &metav1.ObjectMeta{}) == nil {
			kept[field] = metadata[field]
		}
	}
	return kept
}

func (s *onePage) RoundTrip(r *http.Request) (*http.Response, error) {
	body := s.body
	if !strings.HasSuffix(r.URL.Path, "/clusteredcaches") {
		body = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{},"items":[]}`, versions[resource(r)], kinds[resource(r)])
	}
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

func resource(r *http.Request) string { return r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] }

var (
	versions = map[string]string{"statefulsets": "apps/v1", "services": "v1", "poddisruptionbudgets": "policy/v1"}
	kinds    = map[string]string{"statefulsets": "StatefulSetList", "services": "ServiceList", "poddisruptionbudgets": "PodDisruptionBudgetList"}
)
