package kube

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
)

// server answers every request with an empty JSON object of the right kind and
// remembers what it was asked.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Add("Warning", `299 - "v1 is old"`)
		kind := `{"kind":"ClusteredCache","apiVersion":"cache.example.com/v1"}`
		switch {
		case strings.Contains(r.URL.Path, "configmaps"):
			kind = `{"kind":"ConfigMap","apiVersion":"v1"}`
		case strings.Contains(r.URL.Path, "statefulsets"):
			kind = `{"kind":"StatefulSetList","apiVersion":"apps/v1"}`
		case r.Method == http.MethodGet:
			kind = `{"kind":"ClusteredCacheList","apiVersion":"cache.example.com/v1"}`
		}
		_, _ = w.Write([]byte(kind))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestClientCountsRequests(t *testing.T) {
	s := newServer(t)
	logged := captureLog(t)
	var counter Counter
	// A server below a path, as behind a proxy for many clusters.
	target := &Target{Config: &rest.Config{Host: s.URL + "/k8s/clusters/c-1"}, Server: s.URL}
	c, err := NewClient(target, &counter)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.seen) != 0 {
		t.Errorf("connecting sent %d requests", len(s.seen))
	}
	ctx := context.Background()
	cache := &v1.ClusteredCache{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	for _, err := range []error{
		c.List(ctx, &v1.ClusteredCacheList{}),
		c.List(ctx, &v1.ClusteredCacheList{}, client.InNamespace("shop")),
		c.List(ctx, &appsv1.StatefulSetList{}),
		c.Apply(ctx, corev1ac.ConfigMap("m", "shop"), client.FieldOwner("x")),
		client.NewDryRunClient(c).Apply(ctx, corev1ac.ConfigMap("m", "shop"), client.FieldOwner("x")),
		c.Status().Patch(ctx, cache.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte("{}"))),
		c.Delete(ctx, cache.DeepCopy()),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := map[string]int{
		"list clusteredcaches":         2,
		"list statefulsets":            1,
		"apply configmaps":             2,
		"patch clusteredcaches/status": 1,
		"delete clusteredcaches":       1,
	}
	if got := counter.Counts(); !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if n := strings.Count(logged.String(), "v1 is old"); n != 1 {
		t.Errorf("the warning was logged %d times:\n%s", n, logged)
	}
	if accept := s.seen[2].Header.Get("Accept"); !strings.Contains(accept, "protobuf") {
		t.Errorf("StatefulSets are asked for as %q, want protobuf", accept)
	}
	if accept := s.seen[0].Header.Get("Accept"); strings.Contains(accept, "protobuf") {
		t.Errorf("ClusteredCaches are asked for as %q, want JSON", accept)
	}
}

func captureLog(t *testing.T) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	previous := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(previous) })
	return &b
}

func TestRequestName(t *testing.T) {
	tests := []struct{ method, contentType, path, want string }{
		{"GET", "", "/api/v1/namespaces/shop", "get namespaces"},
		{"GET", "", "/api/v1/namespaces", "list namespaces"},
		{"GET", "", "/api/v1/namespaces/shop/configmaps/m", "get configmaps"},
		{"GET", "", "/apis/apps/v1/statefulsets", "list statefulsets"},
		{"POST", "", "/apis/batch/v1/namespaces/shop/jobs", "create jobs"},
		{"PUT", "", "/apis/apps/v1/namespaces/shop/statefulsets/a/scale", "update statefulsets/scale"},
		{"PATCH", "application/apply-patch+yaml", "/apis/cache.example.com/v1/namespaces/shop/clusteredcaches/a/status", "apply clusteredcaches/status"},
		{"PATCH", "application/merge-patch+json", "/apis/cache.example.com/v1/namespaces/shop/clusteredcaches/a", "patch clusteredcaches"},
		{"DELETE", "", "/api/v1/namespaces/shop/services/a", "delete services"},
		{"GET", "", "/version", "get /version"},
		{"GET", "", "/api", "get /api"},
	}
	for _, tc := range tests {
		for _, prefix := range []string{"", "/k8s/c"} {
			r := &http.Request{Method: tc.method, URL: &url.URL{Path: prefix + tc.path}, Header: http.Header{}}
			r.Header.Set("Content-Type", tc.contentType)
			if got := requestName(r, prefix); got != tc.want {
				t.Errorf("%s %s%s: %q, want %q", tc.method, prefix, tc.path, got, tc.want)
			}
		}
	}
}

func TestMapperKnowsEveryKindInUse(t *testing.T) {
	scheme, mapper := Scheme(), Mapper()
	for want, object := range map[string]client.Object{
		"clusteredcaches":      &v1.ClusteredCache{},
		"statefulsets":         &appsv1.StatefulSet{},
		"services":             &corev1.Service{},
		"configmaps":           &corev1.ConfigMap{},
		"poddisruptionbudgets": &policyv1.PodDisruptionBudget{},
	} {
		gvks, _, err := scheme.ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		mapping, err := mapper.RESTMapping(gvks[0].GroupKind(), gvks[0].Version)
		if err != nil || mapping.Resource.Resource != want {
			t.Errorf("%v: %v, %v, want %s", gvks[0], mapping, err, want)
		}
	}
}
