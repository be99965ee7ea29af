package kube

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCouldNotTry(t *testing.T) {
	sets := schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	forbidden := func(reason string) error { return apierrors.NewForbidden(sets, "cache", errors.New(reason)) }
	rbac := func(verb string) string {
		return `User "jane" cannot ` + verb + ` resource "statefulsets" in API group "apps" in the namespace "shop"`
	}
	terminating := apierrors.NewForbidden(sets, "cache", errors.New("unable to create new content in namespace shop because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	webhook := apierrors.NewBadRequest(`admission webhook "w.example.com" does not support dry run`)
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"nothing", nil, ""},
		{"no answer at all", errors.New("connection refused"), ""},
		{"may not patch", forbidden(rbac("patch")), `user "jane" may not patch statefulsets in namespace shop`},
		{"may not create, wrapped", fmt.Errorf("x: %w", forbidden(rbac("create"))), `user "jane" may not create statefulsets in namespace shop`},
		{"may not delete, with what the authorizer adds", forbidden(rbac("delete") + `: RBAC: clusterrole "x" not found`),
			`user "jane" may not delete statefulsets in namespace shop`},
		{"may not update", forbidden(rbac("update")), `user "jane" may not update statefulsets in namespace shop`},
		{"without a name", apierrors.NewForbidden(sets, "", errors.New(rbac("create"))), `user "jane" may not create statefulsets in namespace shop`},
		{"a user name with a quote", forbidden(`User "a\"b" cannot patch resource "statefulsets" in API group "apps" at the cluster scope`),
			`user "a\"b" may not patch statefulsets`},
		{"may not read", forbidden(rbac("get")), ""},
		{"quota", forbidden("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"), ""},
		{"Pod Security", forbidden(`violates PodSecurity "restricted:latest"`), ""},
		{"owner references", forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"),
			"the user may not update clusteredcaches/finalizers in API group cache.example.com, which owner references need here"},
		{"a policy that quotes an authorizer", forbidden("ValidatingAdmissionPolicy 'p' denied request: x is forbidden: " + rbac("patch")), ""},
		{"a webhook's no", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: `admission webhook "w" denied the request: x is forbidden: ` + rbac("patch")}}, ""},
		{"the namespace is being deleted", terminating, ""},
		{"a webhook without dry run", webhook, `webhook "w.example.com" does not support dry run`},
		{"any other bad request", apierrors.NewBadRequest("the object provided is unrecognized"), ""},
		{"the namespace is missing", apierrors.NewNotFound(corev1.Resource("namespaces"), "shop"), "namespace shop does not exist"},
		{"the object is missing", apierrors.NewNotFound(sets, "cache"), ""},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "StatefulSet"}, "cache", nil), ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := CouldNotTry(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
