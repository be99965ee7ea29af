package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient returns a client for the kinds of Scheme, without sending a request.
// Built-in kinds travel as protobuf, ours as JSON. If counter is not nil, it counts
// each request. Warnings of the server are logged, each text once.
func NewClient(t *Target, counter *Counter) (client.Client, error) {
	config := rest.CopyConfig(t.Config)
	// If both are empty, the client chooses the encoding for each kind.
	config.ContentType, config.AcceptContentTypes = "", ""
	config.WarningHandler = nil
	config.WarningHandlerWithContext = &warnings{seen: map[string]bool{}}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", t.Server, err)
	}
	if counter == nil {
		counter = &Counter{}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{next: next, counter: counter, clock: t.Clock, prefix: strings.TrimSuffix(base.Path, "/")}
	})
	if err := renewToken(config); err != nil {
		return nil, fmt.Errorf("connection settings for %s: %w", t.Server, err)
	}
	c, err := client.New(config, client.Options{Scheme: Scheme(), Mapper: Mapper()})
	if err != nil {
		return nil, fmt.Errorf("connection settings for %s: %w", t.Server, err)
	}
	return c, nil
}

// warnings logs the Warning headers of the API server.
type warnings struct {
	mu   sync.Mutex
	seen map[string]bool
}

// HandleWarningHeaderWithContext logs a warning that was not logged before.
// Otherwise one deprecation would be logged for each of ten thousand requests.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	// Kubernetes uses no other code than 299.
	if code != 299 || text == "" {
		return
	}
	w.mu.Lock()
	known := w.seen[text]
	w.seen[text] = true
	w.mu.Unlock()
	if !known {
		slog.WarnContext(ctx, "the API server warns", "warning", text)
	}
}
