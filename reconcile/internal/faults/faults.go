// Package faults stands between a program and the API server, and does to
// single requests what networks, servers and kill do:
//
//	program ──► Proxy ──► API server
//	               │
//	               └── the fault of the n-th request: before it, in its place,
//	                   or when it is done and the program has not heard of it
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

// Fault is what happens to one request. The zero value lets it pass.
type Fault struct {
	// Before is called before the request goes on to the API server. The request
	// then arrives even when the program has given up waiting or is gone.
	Before func()
	// After is called when the API server has answered, before the program
	// hears of it.
	After func()
	// Answer, if not 0, is the HTTP status answered in the API server's place;
	// RetryAfter, if not 0, the seconds that it asks to wait.
	Answer, RetryAfter int
	// Stored lets the API server do what was asked before Answer is given.
	Stored bool
	// Lose breaks the connection before the API server sees the request, Drop in
	// place of its answer.
	Lose, Drop bool
	// Change, if not nil, makes another body of an answer.
	Change func(contentType string, body []byte) []byte
	// Cut breaks the connection in the middle of the answer's body.
	Cut bool
	// Ahead is added to the answer's Date: the server's clock, as the program
	// hears it.
	Ahead time.Duration
}

// Proxy is one way to the API server.
type Proxy struct {
	// Config is that of a client through the proxy.
	Config *rest.Config
	// Kubeconfig is the path of a file for a program.
	Kubeconfig string

	requests atomic.Int64
}

// Requests is the number of requests so far.
func (p *Proxy) Requests() int { return int(p.requests.Load()) }

// Start starts a proxy that ends with the test. It sends requests on with the
// rights of server. choose is asked for the fault of each, numbered from 1; it
// may be called from several goroutines.
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
				r.Out.Header.Del("Authorization") // the rights of server count
			},
			ModifyResponse: fault.modify,
			// The program may have been killed meanwhile.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
			ErrorLog:     log.New(io.Discard, "", 0), // what is cut short is meant to be
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

// arriving is the request with a body and a life of its own. Its context has an
// end, or the reverse proxy would watch the program's connection instead.
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

// modify does to an answer of the API server what the fault says.
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
		// Less than announced: the connection cannot be used any more.
		r.Body = io.NopCloser(bytes.NewReader(body[:len(body)/2]))
	}
	return nil
}

// answer is an answer of the form that the API server gives.
func (f Fault) answer(w http.ResponseWriter) {
	err := apierrors.NewGenericServerResponse(f.Answer, "", schema.GroupResource{}, "", "a fault of the test", f.RetryAfter, false)
	if f.RetryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Answer)
	_ = json.NewEncoder(w).Encode(err.Status())
}

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
