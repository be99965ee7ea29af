package apply

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "example.com/clusteredcache/api/v1"
)

// withRule adds the missing RBAC rule to a refusal to set an owner reference. Some
// clusters, such as OpenShift, restrict who may set one, and their answer does not
// name the rule.
func withRule(err error) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot set blockOwnerDeletion") {
		return err
	}
	return fmt.Errorf("%w: allow the verb update on clusteredcaches/finalizers in API group %s, as deploy/rbac/role.yaml does", err, v1.GroupVersion.Group)
}
