package kube

import (
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// Target is the cluster that a run talks to, and the identity that it uses.
type Target struct {
	// Config connects to the server. UserAgent may be changed before NewClient is
	// called.
	Config *rest.Config
	// Server is the URL of the API server, for people.
	Server string
	// Context is the kubeconfig context. It is empty in a pod, and if flags alone
	// choose the server.
	Context string
	// Identity describes who sends the requests, as far as local files show it. It
	// is the kubeconfig's user, the ServiceAccount of the pod's token, or a
	// description of the flags.
	Identity string
	// Namespace is that of the context, or the one that the pod runs in.
	Namespace string
	// Clock is the clock of the cluster. It may be nil if nobody needs the time.
	Clock *Clock
	// InCluster reports that the settings come from the pod that we run in.
	InCluster bool
}

// String returns the text for the first line of every run: the server, and the
// identity.
func (t *Target) String() string {
	var from []string
	switch {
	case t.InCluster:
		from = append(from, "in cluster")
	case t.Context != "":
		from = append(from, "context "+t.Context)
	}
	if t.Identity != "" {
		from = append(from, "user "+t.Identity)
	}
	if len(from) == 0 {
		return t.Server
	}
	return t.Server + " (" + strings.Join(from, ", ") + ")"
}

// withoutPassword returns the URL with a password in it masked, so that it may be
// printed.
func withoutPassword(server string) string {
	if u, err := url.Parse(server); err == nil && u.User != nil {
		return u.Redacted()
	}
	return server
}
