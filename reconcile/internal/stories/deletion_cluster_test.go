package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// The CRD is deleted, and with it all caches: a pass still runs their hooks and
// lets go of them, and only then is the CRD gone.
func TestDeletionOfTheCRD(t *testing.T) {
	t.Parallel()
	w := world.Separate(t) // of its own: all caches of a control plane go
	c := w.Cache(world.Hooks(world.HookGood))
	w.Pass()
	definition := crd(t)
	w.Delete(definition)
	w.Eventually("the cache is being deleted", func() bool {
		return w.Env.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c) == nil && c.DeletionTimestamp != nil
	})
	w.Settle().Wants(model.Settled, v1.ReasonFinalized)
	w.Eventually("the CRD is gone", func() bool {
		return apierrors.IsNotFound(w.Env.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	})
	w.Collected(&appsv1.StatefulSet{})
	w.Named(resources.HookJobName(c, "a")).Collected(&batchv1.Job{})
}

// Where the cluster enforces who may refer to an owner, the shipped rules are
// enough; without the one about finalizers the message names it, in a dry run
// too.
func TestOwnerReferencesAreEnforced(t *testing.T) {
	t.Parallel()
	// Of its own: no other has the plugin.
	w := world.Separate(t, "--admission-plugins=OwnerReferencesPermissionEnforcement")
	shipped := w.ShippedRole()
	complete := w.BindHere("complete", shipped.Rules)
	incomplete := w.BindHere("incomplete", slices.DeleteFunc(slices.Clone(shipped.Rules), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "clusteredcaches/finalizers")
	}))
	w.Cache(world.Hooks(world.HookGood))
	const rule = "the verb update on clusteredcaches/finalizers in API group cache.example.com"
	incomplete.Pass().Wants(model.NotDone, v1.ReasonApplyRejected).Says(rule)
	for _, o := range incomplete.Diff().Caches[0].Outcomes {
		if o.Step.Action == model.ActionCreate && (o.Result != model.Estimated || !strings.Contains(o.Estimate, "clusteredcaches/finalizers")) {
			t.Errorf("%s: %s (%s), %v", o.Step.Target, o.Result, o.Estimate, o.Err)
		}
	}
	complete.Settle().Wants(model.Settled, v1.ReasonReady)

	// A hook's Job refers to its owner as well.
	w.Remove()
	incomplete.Pass().Wants(model.NotDone, v1.ReasonApplyRejected).Says(rule, "Job")
	complete.Settle().Wants(model.Settled, v1.ReasonFinalized)
}

// storage.retain decides what becomes of the claims; on re-creation the report
// says that those which are there are reused.
func TestClaimsOfADeletedCache(t *testing.T) {
	t.Parallel()
	for retain, kept := range map[v1.RetainPolicy]bool{v1.RetainPolicyRetain: true, v1.RetainPolicyDelete: false} {
		w := world.Shared(t)
		stored := fmt.Sprintf(`spec: {engine: Custom, image: example.com/cache, size: 2, storage: {size: 1Gi, retain: %s}}`, retain)
		w.Cache(stored)
		if s := createdStatefulSet(w.Settle()); s.Reason != "" {
			t.Errorf("a first cache reuses something: %q", s.Reason)
		}
		w.Remove()
		f := w.Diff()
		if e := fmt.Sprint(f.Caches[0].Outcomes[0].Step.Effects); strings.Contains(e, "claims are kept") != kept {
			t.Errorf("%s: foretold: %s", retain, e)
		}
		w.Pass()
		w.Eventually("the old nodes are gone", func() bool {
			return w.IsGone("cache", &appsv1.StatefulSet{}) && w.IsGone("cache-0", &corev1.Pod{})
		})
		if kept {
			w.Claim(0)
		} else {
			w.Eventually("the claims are gone", func() bool {
				return w.IsGone("data-cache-0", &corev1.PersistentVolumeClaim{}) && w.IsGone("data-cache-1", &corev1.PersistentVolumeClaim{})
			})
		}
		w.Cache(stored, `spec: {version: "2"}`)
		want := ""
		if kept {
			want = "2 existing claims are reused, with what is on them: data-cache-0, data-cache-1"
		}
		if got := createdStatefulSet(w.Settle()).Reason; got != want {
			t.Errorf("%s: %q, want %q", retain, got, want)
		}
	}
}

func createdStatefulSet(f world.Fleet) model.Step {
	for _, o := range f.Caches[0].Outcomes {
		if o.Result == model.Created && o.Step.Target.Kind == "StatefulSet" {
			return o.Step
		}
	}
	return model.Step{Reason: "no StatefulSet was created"}
}
