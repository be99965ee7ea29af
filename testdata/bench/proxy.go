package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/clusteredcache/testdata/bench/recording"
)

// proxy stands in front of the API server on the loopback interface and records the
// requests.
type proxy struct {
	kubeconfig string // the file that leads to the proxy
	server     *http.Server

	mu       sync.Mutex
	requests []recording.Request
	received atomic.Int64
}

// startProxy starts a proxy and writes the kubeconfig that leads to it to file.
func startProxy(config *rest.Config, file string) (*proxy, error) {
	config = rest.CopyConfig(config)
	// The proxy does not change bodies. They are compressed if the program asked for
	// it.
	config.DisableCompression = true
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{kubeconfig: file}
	forward := &httputil.ReverseProxy{
		Transport:     transport,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // forwards a watch without delay
		ModifyResponse: func(r *http.Response) error {
			r.Body = &counted{r.Body, &p.received}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // programs end in the middle of a watch
	}
	p.server = &http.Server{Handler: p.recorder(forward)}
	go func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Print("proxy: ", err)
		}
	}()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: "http://" + listener.Addr().String()}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of the proxy: %w", err)
	}
	return p, nil
}

func (p *proxy) close() { _ = p.server.Close() }

func (p *proxy) recorder(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		p.requests = append(p.requests, recording.Of(r, string(body)))
		p.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// take returns the requests since the last call, and the bytes in the bodies of their
// answers.
func (p *proxy) take() ([]recording.Request, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests := p.requests
	p.requests = nil
	return requests, p.received.Swap(0)
}

// counted counts the bytes that are read from a body.
type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}
