package kube

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// CouldNotTry returns why the API server did not even try a dry-run write. It knows
// three causes: the identity may not write, a webhook does not support dry runs, or
// the namespace does not exist yet.
//
// It returns "" for an answer about the object itself, such as a refusal by quota
// or admission. It also returns "" for every other error.
func CouldNotTry(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	status := answer.Status()
	switch status.Code {
	case http.StatusForbidden:
		return mayNot(status.Message)
	case http.StatusBadRequest:
		if m := refusesDryRun.FindStringSubmatch(status.Message); m != nil {
			return fmt.Sprintf("webhook %s does not support dry run", m[1])
		}
	case http.StatusNotFound:
		return namespaceMissing(status)
	}
	return ""
}

var (
	// notAuthorized matches the beginning of an authorizer's message. It is
	// anchored, because a webhook or a policy may quote such a message later in its
	// own.
	notAuthorized = regexp.MustCompile(`^\S+ (?:"[^"]*" )?is forbidden: User ("(?:[^"\\]|\\.)*") cannot (create|update|patch|delete) resource "([^"]+)" in API group "[^"]*"(?: in the namespace "([^"]+)")?`)

	// noFinalizers matches the answer of a cluster that restricts who may set
	// blockOwnerDeletion.
	noFinalizers = regexp.MustCompile(`^\S+ "[^"]*" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on`)

	refusesDryRun = regexp.MustCompile(`^admission webhook ("[^"]*") does not support dry run`)
)

// mayNot explains a refusal by the authorizer. It returns "" for any other message.
func mayNot(message string) string {
	m := notAuthorized.FindStringSubmatch(message)
	switch {
	case noFinalizers.MatchString(message):
		return "the user may not update clusteredcaches/finalizers in API group " + v1.GroupVersion.Group + ", which owner references need here"
	case m == nil:
		return ""
	}
	user, verb, resource, namespace := m[1], m[2], m[3], m[4]
	return fmt.Sprintf("user %s may not %s %s%s", user, verb, resource, prefixed(" in namespace ", namespace))
}

// namespaceMissing explains an answer that the namespace does not exist. It returns
// "" for any other.
func namespaceMissing(status metav1.Status) string {
	d := status.Details
	if d == nil || d.Kind != "namespaces" || !strings.Contains(status.Message, "not found") {
		return ""
	}
	return fmt.Sprintf("namespace %s does not exist", d.Name)
}
