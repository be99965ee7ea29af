package apply

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "example.com/clusteredcache/api/v1"
)

// withRule names the missing rule where a cluster enforces who may refer to an
// owner, as OpenShift does: the server's answer does not.
func withRule(err error) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot set blockOwnerDeletion") {
		return err
	}
	return fmt.Errorf("%w: allow the verb update on clusteredcaches/finalizers in API group %s, as deploy/rbac/role.yaml does", err, v1.GroupVersion.Group)
}
