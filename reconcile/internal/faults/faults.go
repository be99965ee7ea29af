// Package faults stands between a program and the API server, and does to
// single requests what networks, servers and kill do:
//
//	program ──► Proxy ──► API server
//	               │
//	               └── the fault of the n-th request: before it, in its place,
//	                   or when it is done and the program has not heard of it
package faults

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Fault is what happens to one request. The zero value lets it pass.
type Fault struct {
	// Before is called before the request goes on to the API server.
	Before func()
	// After is called when the API server has answered, before the program
	// hears of it.
	After func()
	// Answer, if not 0, is the HTTP status answered in the API server's place.
	Answer int
	// Drop breaks the connection in place of the answer.
	Drop bool
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
			fault.Before()
		}
		if fault.Answer != 0 {
			answer(w, fault.Answer)
			return
		}
		forward := &httputil.ReverseProxy{
			Transport: transport,
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ModifyResponse: func(*http.Response) error {
				if fault.After != nil {
					fault.After()
				}
				if fault.Drop {
					panic(http.ErrAbortHandler)
				}
				return nil
			},
			// The program may have been killed meanwhile.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
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

// answer is an answer of the form that the API server gives.
func answer(w http.ResponseWriter, code int) {
	status := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "a fault of the test", 0, false).Status()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status)
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
