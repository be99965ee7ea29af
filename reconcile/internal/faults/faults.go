// Package faults stands between a program and the API server. It makes single
// requests fail in the ways of networks, servers and the kill command:
//
//	program ──► Proxy ──► API server
//	               │
//	               └── the fault of the n-th request: before it, in its place,
//	                   or after it, when the program has not seen the answer yet
package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Fault is what happens to one request. The zero value forwards the request
// unchanged.
type Fault struct {
	// Before is called before the request is forwarded to the API server. The
	// request then arrives even if the program has given up or has been killed.
	Before func()
	// After is called when the API server has answered, before the program receives
	// the answer.
	After func()
	// Answer, if not 0, is the HTTP status to answer instead of the API server.
	// RetryAfter, if not 0, is the number of seconds in its Retry-After header.
	Answer, RetryAfter int
	// Stored makes the API server execute the request before Answer is given.
	Stored bool
	// Lose breaks the connection before the API server sees the request. Drop
	// breaks it instead of delivering the answer.
	Lose, Drop bool
	// Change, if not nil, replaces the body of the answer.
	Change func(contentType string, body []byte) []byte
	// Cut breaks the connection in the middle of the answer's body.
	Cut bool
	// Ahead is added to the Date header of the answer. It makes the server's clock
	// look wrong.
	Ahead time.Duration
}

// Proxy is one connection to the API server.
type Proxy struct {
	// Config is for a client that uses the proxy.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig for a program that uses the proxy.
	Kubeconfig string

	requests atomic.Int64
}

// Requests returns the number of requests so far.
func (p *Proxy) Requests() int { return int(p.requests.Load()) }

// Start starts a proxy that ends with the test. It forwards requests with the
// rights of server. The function choose returns the fault of each request, numbered
// from 1. Several goroutines may call it.
func Start(t testing.TB, server *rest.Config, choose func(n int, r *http.Request) Fault) *Proxy {
	t.Helper()
	target, err := url.Parse(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := choose(int(p.requests.Add(1)), r)
		if fault.Before != nil {
			var end context.CancelFunc
			r, end = arriving(r)
			defer end()
			fault.Before()
		}
		if fault.Lose {
			panic(http.ErrAbortHandler)
		}
		if fault.Answer != 0 && !fault.Stored {
			fault.answer(w)
			return
		}
		forward := &httputil.ReverseProxy{
			Transport: transport,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Header.Del("Authorization") // the request uses the rights of server
			},
			ModifyResponse: fault.modify,
			// The program may have been killed in the meantime.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
			ErrorLog:     log.New(io.Discard, "", 0), // the broken connections are intended
		}
		if fault.Answer != 0 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			fault.answer(w)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	p.Config = &rest.Config{Host: listener.URL, QPS: -1}
	p.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(p.Kubeconfig, listener.URL); err != nil {
		t.Fatal(err)
	}
	return p
}

// arriving returns the request with its body read and its own context. Its context
// can end, because otherwise the reverse proxy would watch the connection of the
// program.
func arriving(r *http.Request) (*http.Request, context.CancelFunc) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the program went away while sending it
	}
	ctx, end := context.WithCancel(context.WithoutCancel(r.Context()))
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, end
}

// modify applies the fault to an answer of the API server.
func (f Fault) modify(r *http.Response) error {
	if f.After != nil {
		f.After()
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil && f.Ahead != 0 {
		r.Header.Set("Date", date.Add(f.Ahead).UTC().Format(http.TimeFormat))
	}
	if f.Change == nil && !f.Cut {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if f.Change != nil {
		body = f.Change(r.Header.Get("Content-Type"), body)
	}
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.Body = io.NopCloser(bytes.NewReader(body))
	if f.Cut {
		// The body is shorter than announced, so the connection cannot be used
		// again.
		r.Body = io.NopCloser(bytes.NewReader(body[:len(body)/2]))
	}
	return nil
}

// answer writes an error in the form that the API server uses.
func (f Fault) answer(w http.ResponseWriter) {
	err := apierrors.NewGenericServerResponse(f.Answer, "", schema.GroupResource{}, "", "a fault of the test", f.RetryAfter, false)
	if f.RetryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Answer)
	_ = json.NewEncoder(w).Encode(err.Status())
}

// writeKubeconfig writes a kubeconfig that names only the server.
func writeKubeconfig(path, server string) error {
	config := api.NewConfig()
	config.Clusters["faults"] = &api.Cluster{Server: server}
	config.Contexts["faults"] = &api.Context{Cluster: "faults"}
	config.CurrentContext = "faults"
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}
