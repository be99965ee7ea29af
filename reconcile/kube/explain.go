package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Explain says in one sentence what went wrong, where, and what to do about it. It
// knows these causes: a kind that is not installed, refused credentials, missing
// rights, too many requests, and a failed connection. Any other error is returned
// as it is.
func Explain(err error, t *Target) string {
	var connection *url.Error
	switch {
	case kindMissing(err):
		return fmt.Sprintf("%s does not know ClusteredCaches: install them with `kubectl apply --server-side -f deploy/crd`", t.Server)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%s does not accept the credentials%s: log in again, or check the token or certificate",
			t.Server, prefixed(" of ", t.Identity))
	case apierrors.IsForbidden(err):
		return explainForbidden(err, t)
	case apierrors.IsTooManyRequests(err):
		return fmt.Sprintf("%s has too much to do (429): %v: try again later, lower --concurrency, or give the requests%s more room (kubectl get flowschemas)",
			t.Server, err, prefixed(" of ", t.Identity))
	case errors.As(err, &connection):
		return explainConnection(connection, t)
	}
	return err.Error()
}

// prefixed returns prefix and s, or "" if s is empty.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// kindMissing reports whether a server does not know the resource. A server that
// only lacks the object answers through the API. A 404 for an unknown resource does
// not come from the API.
func kindMissing(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	if details == nil || details.Kind != "clusteredcaches" {
		return false
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return details.Name == ""
}

// denied matches an authorizer's message. Admission, quota and Pod Security use the
// same status code with other words.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "[^"]*" (?:in the namespace "([^"]+)"|at the cluster scope)`)

// explainForbidden explains a refusal, and names the missing right if an authorizer
// refused.
func explainForbidden(err error, t *Target) string {
	m := denied.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Sprintf("%s refuses: %v", t.Server, err)
	}
	user, verb, resource, namespace := m[1], m[2], m[3], m[4]
	if namespace == "" {
		return fmt.Sprintf("user %s may not %s %s in all namespaces of %s: bind a ClusterRole that allows it, or name the namespaces with -n",
			user, verb, resource, t.Server)
	}
	return fmt.Sprintf("user %s may not %s %s in namespace %s of %s: bind a Role there that allows it",
		user, verb, resource, namespace, t.Server)
}

// explainConnection explains a request that got no answer from the server.
func explainConnection(err *url.Error, t *Target) string {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		plain       tls.RecordHeaderError
	)
	cause := err.Err
	where := t.Server + prefixed(" (context ", t.Context)
	if t.Context != "" {
		where += ")"
	}
	switch {
	case strings.HasPrefix(cause.Error(), "getting credentials:"):
		return fmt.Sprintf("no credentials for %s: %s: check the exec section of the kubeconfig's user",
			where, strings.TrimPrefix(cause.Error(), "getting credentials: "))
	case errors.As(cause, &dns):
		return fmt.Sprintf("cannot reach %s: the host name %s does not resolve: check the server address, the network and VPN", where, dns.Name)
	case errors.As(cause, &certificate), errors.As(cause, &authority):
		return fmt.Sprintf("cannot trust %s: %v: check the certificate-authority of the kubeconfig and the server address", where, cause)
	case errors.As(cause, &plain), strings.Contains(cause.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Sprintf("cannot reach %s: it does not speak TLS: check scheme and port of the server address", where)
	case errors.Is(cause, syscall.ECONNREFUSED):
		return fmt.Sprintf("cannot reach %s: connection refused: check the server address and that the API server runs", where)
	case err.Timeout(), errors.Is(cause, context.DeadlineExceeded):
		return fmt.Sprintf("cannot reach %s: no answer in time: check the server address, the network and VPN, or raise --request-timeout", where)
	}
	return fmt.Sprintf("cannot reach %s: %v", where, cause)
}
