package kube

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Counter counts requests by verb and resource: "list clusteredcaches", "apply
// statefulsets", "apply clusteredcaches/status". A dry-run request counts under the
// same verb, and a repeated request counts again. The zero value is ready to use.
// Goroutines may share a Counter.
type Counter struct {
	mu     sync.Mutex
	counts map[string]int
}

// Counts returns a copy of the counts so far.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func (c *Counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[name]++
}

// requestName returns the verb and resource of r. For a path outside the Kubernetes
// API, it returns the method and the path.
func requestName(r *http.Request, prefix string) string {
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, prefix), "/")
	parts := strings.Split(path, "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:] // api, version
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:] // apis, group, version
	default:
		return strings.ToLower(r.Method) + " /" + path
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource, named := parts[0], len(parts) > 1
	if len(parts) > 2 {
		resource += "/" + strings.Join(parts[2:], "/")
	}
	return verb(r, named) + " " + resource
}

// verb returns the Kubernetes verb of r. The argument named means that the path
// names one object.
func verb(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodGet:
		if !named {
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	default:
		return strings.ToLower(r.Method)
	}
}
