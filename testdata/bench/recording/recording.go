// Package recording has the requests that the counting proxy saw from one program,
// so that another program can send the same.
package recording

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Request is a request as it was sent.
type Request struct {
	Method      string     `json:"method"`
	Path        string     `json:"path"`
	Query       url.Values `json:"query,omitempty"`
	ContentType string     `json:"contentType,omitempty"`
	Accept      string     `json:"accept,omitempty"`
	Body        string     `json:"body,omitempty"`
}

// Of returns r as a Request. The body of r must already have been read.
func Of(r *http.Request, body string) Request {
	return Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(),
		ContentType: r.Header.Get("Content-Type"), Accept: r.Header.Get("Accept"), Body: body,
	}
}

// Resource returns the plural name of the kind in the path of r, or "other" for a path
// without a kind. named reports whether r is about one object and not about a list.
func (r Request) Resource() (resource string, named bool) {
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:] // api, version
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:] // apis, group, version
	default:
		return "other", false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return parts[0], len(parts) > 1
}

// Verb returns the Kubernetes verb, or "discovery" for a path without a kind.
func (r Request) Verb() string {
	resource, named := r.Resource()
	switch {
	case resource == "other":
		return "discovery"
	case r.Method == http.MethodGet && r.Query.Has("watch"):
		return "watch"
	case r.Method == http.MethodGet && !named:
		return "list"
	case r.Method == http.MethodGet:
		return "get"
	case r.Method == http.MethodPatch && strings.HasPrefix(r.ContentType, "application/apply-patch") && r.Query.Has("dryRun"):
		return "dry-run apply"
	case r.Method == http.MethodPatch && strings.HasPrefix(r.ContentType, "application/apply-patch"):
		return "apply"
	}
	return strings.ToLower(r.Method)
}

// Write writes requests to a file.
func Write(file string, requests []Request) error {
	data, err := json.Marshal(requests)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// Read reads what Write wrote.
func Read(file string) ([]Request, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var requests []Request
	if err := json.Unmarshal(data, &requests); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return requests, nil
}
