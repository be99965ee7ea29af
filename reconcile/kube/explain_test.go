package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
)

// list lists ClusteredCaches at host and explains the error.
func list(t *testing.T, host string, timeout time.Duration) string {
	t.Helper()
	target := &Target{Config: &rest.Config{Host: host, Timeout: timeout}, Server: host, Context: "c", Identity: "jane"}
	c, err := NewClient(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = c.List(context.Background(), &v1.ClusteredCacheList{}, client.InNamespace("shop"))
	if err == nil {
		t.Fatal("the list succeeded")
	}
	return Explain(fmt.Errorf("listing ClusteredCaches: %w", err), target)
}

func expect(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("got  %s\nwant %q in it", got, part)
		}
	}
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestExplainAnswers(t *testing.T) {
	const statusOf = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`
	tests := []struct {
		name   string
		status int
		body   string
		want   []string
	}{
		{"CRD missing", 404, "404 page not found\n", []string{"does not know ClusteredCaches", "kubectl apply --server-side -f deploy/crd"}},
		{"unauthorized", 401, fmt.Sprintf(statusOf, "Unauthorized", 401, "Unauthorized"),
			[]string{"does not accept the credentials of jane"}},
		{"forbidden in a namespace", 403,
			fmt.Sprintf(statusOf, "Forbidden", 403, `clusteredcaches.cache.example.com is forbidden: User "system:serviceaccount:ops:x" cannot list resource "clusteredcaches" in API group "cache.example.com" in the namespace "shop"`),
			[]string{"user system:serviceaccount:ops:x may not list clusteredcaches in namespace shop of http://", "bind a Role"}},
		{"forbidden everywhere", 403,
			fmt.Sprintf(statusOf, "Forbidden", 403, `clusteredcaches.cache.example.com is forbidden: User "jane" cannot list resource "clusteredcaches" in API group "cache.example.com" at the cluster scope`),
			[]string{"user jane may not list clusteredcaches in all namespaces", "with -n"}},
		{"refused by something else", 403,
			fmt.Sprintf(statusOf, "Forbidden", 403, `exceeded quota: q`), []string{"refuses: ", "exceeded quota: q"}},
		{"anything else", 500, fmt.Sprintf(statusOf, "InternalError", 500, "etcd is sad"), []string{"etcd is sad"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(answer(tc.status, tc.body))
			defer s.Close()
			expect(t, list(t, s.URL, time.Minute), tc.want...)
		})
	}
}

func TestExplainUnauthorizedToken(t *testing.T) {
	target, err := newWorld(t).sources().load(&clientcmd.ConfigOverrides{AuthInfo: clientcmdapi.AuthInfo{Token: "x"}, ClusterInfo: clientcmdapi.Cluster{Server: "https://s"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, Explain(apierrors.NewUnauthorized("Unauthorized"), target), "https://s does not accept the credentials of --token: log in again")
}

func TestExplainNoAnswer(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		expect(t, list(t, "https://127.0.0.1:1", time.Minute),
			"cannot reach https://127.0.0.1:1 (context c): connection refused")
	})
	t.Run("name", func(t *testing.T) {
		expect(t, list(t, "https://no-such-host.invalid", time.Minute), "no-such-host.invalid does not resolve")
	})
	t.Run("certificate", func(t *testing.T) {
		s := httptest.NewTLSServer(answer(200, "{}"))
		defer s.Close()
		expect(t, list(t, s.URL, time.Minute), "cannot trust ", "x509: ", "certificate-authority")
	})
	t.Run("no TLS", func(t *testing.T) {
		s := httptest.NewServer(answer(200, "{}"))
		defer s.Close()
		expect(t, list(t, "https://"+s.Listener.Addr().String(), time.Minute), "does not speak TLS")
	})
	t.Run("timeout", func(t *testing.T) {
		release := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer s.Close()
		defer close(release)
		expect(t, list(t, s.URL, 50*time.Millisecond), "no answer in time")
	})
}

// A cache that does not exist is no missing CRD.
func TestExplainNotFound(t *testing.T) {
	err := apierrors.NewNotFound(schema.GroupResource{Group: v1.GroupVersion.Group, Resource: "clusteredcaches"}, "a")
	if got := Explain(err, &Target{Server: "s"}); got != err.Error() {
		t.Errorf("got %q", got)
	}
	plain := errors.New("anything")
	if got := Explain(plain, &Target{Server: "s"}); got != "anything" {
		t.Errorf("got %q", got)
	}
}
