package faults_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"example.com/clusteredcache/reconcile/internal/faults"
)

func TestProxy(t *testing.T) {
	var events, bodies []string
	note := func(what string) func() { return func() { events = append(events, what) } }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		note("server " + r.URL.Path)()
		_, _ = io.WriteString(w, "answer")
	}))
	defer server.Close()
	all := []faults.Fault{
		{},
		{Before: note("before"), After: note("after")},
		{Answer: http.StatusInternalServerError},
		{Drop: true},
		{Lose: true},
		{Answer: http.StatusGatewayTimeout, Stored: true, RetryAfter: 1},
		{Change: func(_ string, body []byte) []byte { return append(body, '!') }},
		{Cut: true},
	}
	proxy := faults.Start(t, &rest.Config{Host: server.URL, BearerToken: "token"}, func(n int, _ *http.Request) faults.Fault { return all[n-1] })
	for i, want := range []int{200, 200, 500, 0, 0, 504, 200, 200} {
		// POST, which no client sends again by itself.
		answer, err := http.Post(proxy.Config.Host+"/x", "", nil)
		got := 0
		if err == nil {
			got = answer.StatusCode
			body, err := io.ReadAll(answer.Body)
			bodies = append(bodies, string(body))
			if err != nil {
				bodies = append(bodies, err.Error())
			}
			_ = answer.Body.Close()
		}
		if got != want {
			t.Errorf("request %d: status %d (%v), want %d", i+1, got, err, want)
		}
	}
	if n := len(bodies); bodies[0] != "answer" || bodies[n-3] != "answer!" || bodies[n-2] != "ans" || bodies[n-1] != io.ErrUnexpectedEOF.Error() {
		t.Errorf("answers %q", bodies)
	}
	if want := []string{"server /x", "before", "server /x", "after", "server /x", "server /x", "server /x", "server /x"}; !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
	if n := proxy.Requests(); n != 8 {
		t.Errorf("%d requests", n)
	}
}

// What the program has given up arrives all the same, with its body.
func TestLateRequest(t *testing.T) {
	arrived := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		arrived <- fmt.Sprint(string(body), err)
	}))
	defer server.Close()
	given := make(chan struct{})
	proxy := faults.Start(t, &rest.Config{Host: server.URL}, func(int, *http.Request) faults.Fault {
		return faults.Fault{Before: func() { <-given; time.Sleep(100 * time.Millisecond) }}
	})
	client := &http.Client{Timeout: 50 * time.Millisecond}
	if _, err := client.Post(proxy.Config.Host, "", strings.NewReader("body")); err == nil {
		t.Fatal("the request was answered")
	}
	client.CloseIdleConnections()
	close(given)
	if got := <-arrived; got != "body<nil>" {
		t.Error(got)
	}
}
