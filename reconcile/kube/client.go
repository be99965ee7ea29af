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

// NewClient makes a client for the kinds of Scheme, without sending a request.
// Built-in kinds travel as protobuf, ours as JSON. Each request is counted in
// counter (nil: none is). What the server warns of is logged, each text once.
func NewClient(t *Target, counter *Counter) (client.Client, error) {
	config := rest.CopyConfig(t.Config)
	// Empty lets the client choose for each kind.
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

// warnings logs what the API server says in Warning headers.
type warnings struct {
	mu   sync.Mutex
	seen map[string]bool
}

// HandleWarningHeaderWithContext logs a warning that was not logged before: a
// deprecation is otherwise repeated for each of ten thousand requests.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	// 299 is the one code that Kubernetes uses.
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
