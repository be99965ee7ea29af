package kube

import (
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// Target is the cluster that a run talks to, and as whom.
type Target struct {
	// Config connects to the server. UserAgent may be changed before NewClient.
	Config *rest.Config
	// Server is the URL of the API server, for people.
	Server string
	// Context is the kubeconfig context; empty in a pod, and when flags alone
	// say where the server is.
	Context string
	// Identity names who asks as far as local files tell: the kubeconfig's
	// user, the ServiceAccount of the pod's token, or a description of what
	// the flags gave.
	Identity string
	// Namespace is the one of the context, or the pod's own.
	Namespace string
	// Clock is the cluster's; nil: nobody asks for the time.
	Clock *Clock
	// InCluster: the settings come from the pod that we run in.
	InCluster bool
}

// String is the form of the first line of every run: where, and as whom.
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

// withoutPassword is the URL as it may be printed: a password in it is masked.
func withoutPassword(server string) string {
	if u, err := url.Parse(server); err == nil && u.User != nil {
		return u.Redacted()
	}
	return server
}
