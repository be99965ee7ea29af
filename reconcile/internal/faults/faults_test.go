package faults_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"example.com/clusteredcache/reconcile/internal/faults"
)

func TestProxy(t *testing.T) {
	var events []string
	note := func(what string) func() { return func() { events = append(events, what) } }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		note("server " + r.URL.Path)()
	}))
	defer server.Close()
	all := []faults.Fault{
		{},
		{Before: note("before"), After: note("after")},
		{Answer: http.StatusInternalServerError},
		{Drop: true},
	}
	proxy := faults.Start(t, &rest.Config{Host: server.URL, BearerToken: "token"}, func(n int, _ *http.Request) faults.Fault { return all[n-1] })
	for i, want := range []int{200, 200, 500, 0} {
		// POST, which no client sends again by itself.
		answer, err := http.Post(proxy.Config.Host+"/x", "", nil)
		got := 0
		if err == nil {
			got = answer.StatusCode
			_ = answer.Body.Close()
		}
		if got != want {
			t.Errorf("request %d: status %d (%v), want %d", i+1, got, err, want)
		}
	}
	if want := []string{"server /x", "before", "server /x", "after", "server /x"}; !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
	if n := proxy.Requests(); n != 4 {
		t.Errorf("%d requests", n)
	}
}
