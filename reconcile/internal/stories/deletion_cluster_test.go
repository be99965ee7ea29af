package stories_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/resources"
)

// separate starts a control plane of the test's own.
func separate(t *testing.T, flags ...string) *testenv.Env {
	t.Helper()
	e, err := testenv.Start(flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// The CRD is deleted, and with it all caches: a pass still runs their hooks and
// lets go of them, and only then is the CRD gone.
func TestDeletionOfTheCRD(t *testing.T) {
	env := separate(t)
	ns := env.Namespace(t)
	c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}
	withHooks(imageGood)(c)
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	definition := crd(t)
	if err := env.Client.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the cache is being deleted", func() bool {
		return env.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c) == nil && c.DeletionTimestamp != nil
	})
	f := runWith(t, clientOf(t, env, nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Wait: true})
	wantVerdict(t, f, "cache", model.Settled, v1.ReasonFinalized)
	testenv.Eventually(t, "the CRD is gone", func() bool {
		return apierrors.IsNotFound(env.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	})
	for _, o := range []client.Object{&appsv1.StatefulSet{ObjectMeta: meta(ns, "cache")}, &batchv1.Job{ObjectMeta: meta(ns, resources.HookJobName(c, "a"))}} {
		testenv.Eventually(t, "the children are collected", func() bool {
			return apierrors.IsNotFound(env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		})
	}
}

// Where the cluster enforces who may refer to an owner, the shipped rules are
// enough; without the one about finalizers the message names it, in a dry run
// too.
func TestOwnerReferencesAreEnforced(t *testing.T) {
	env := separate(t, "--admission-plugins=OwnerReferencesPermissionEnforcement")
	ns := env.Namespace(t)
	shipped := shippedRole(t)
	bind(t, env, ns, "complete", shipped.Rules)
	bind(t, env, ns, "incomplete", slices.DeleteFunc(slices.Clone(shipped.Rules), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "clusteredcaches/finalizers")
	}))
	as := func(user string) client.Client {
		c, err := kube.NewClient(&kube.Target{Config: asUser(env.Config, user)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	options := reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1}
	cache := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}
	withHooks(imageGood)(cache)
	if err := env.Client.Create(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	const rule = "the verb update on clusteredcaches/finalizers in API group cache.example.com"
	f := runWith(t, as("incomplete"), options)
	wantVerdict(t, f, "cache", model.NotDone, v1.ReasonApplyRejected)
	if m := verdict(t, f, "cache").Message; !strings.Contains(m, rule) {
		t.Error(m)
	}
	preview := options
	preview.Estimate = kube.CouldNotTry
	for _, o := range runWith(t, client.NewDryRunClient(as("incomplete")), preview).Caches[0].Outcomes {
		if o.Step.Action == model.ActionCreate && (o.Result != model.Estimated || !strings.Contains(o.Estimate, "clusteredcaches/finalizers")) {
			t.Errorf("%s: %s (%s), %v", o.Step.Target, o.Result, o.Estimate, o.Err)
		}
	}
	waiting := options
	waiting.Wait = true
	wantVerdict(t, runWith(t, as("complete"), waiting), "cache", model.Settled, v1.ReasonReady)

	// A hook's Job refers to its owner as well.
	if err := env.Client.Delete(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	f = runWith(t, as("incomplete"), options)
	wantVerdict(t, f, "cache", model.NotDone, v1.ReasonApplyRejected)
	if m := verdict(t, f, "cache").Message; !strings.Contains(m, rule) || !strings.Contains(m, "Job") {
		t.Error(m)
	}
	wantVerdict(t, runWith(t, as("complete"), waiting), "cache", model.Settled, v1.ReasonFinalized)
}

func shippedRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(), "deploy", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		t.Fatal(err)
	}
	return role
}

// bind gives a user these rights in a namespace.
func bind(t *testing.T, env *testenv.Env, ns, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta(ns, user),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}},
	} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// storage.retain decides what becomes of the claims; on re-creation the report
// says that those which are there are reused.
func TestClaimsOfADeletedCache(t *testing.T) {
	t.Parallel()
	for retain, kept := range map[v1.RetainPolicy]bool{v1.RetainPolicyRetain: true, v1.RetainPolicyDelete: false} {
		ns := env.Namespace(t)
		stored := func(c *v1.ClusteredCache) {
			c.Spec.Engine, c.Spec.Image, c.Spec.Size = v1.EngineCustom, "example.com/cache", 2
			c.Spec.Storage = &v1.StorageSpec{Size: quantity("1Gi"), Retain: retain}
		}
		create(t, ns, "cache", stored)
		if s := createdStatefulSet(settle(t, ns)); s.Reason != "" {
			t.Errorf("a first cache reuses something: %q", s.Reason)
		}
		remove(t, ns, "cache")
		f := diff(t, env, ns)
		if e := fmt.Sprint(f.Caches[0].Outcomes[0].Step.Effects); strings.Contains(e, "claims are kept") != kept {
			t.Errorf("%s: foretold: %s", retain, e)
		}
		pass(t, ns)
		testenv.Eventually(t, "the old nodes are gone", func() bool {
			return isGone(t, ns, "cache", &appsv1.StatefulSet{}) && isGone(t, ns, "cache-0", &corev1.Pod{})
		})
		if kept {
			get(t, ns, "data-cache-0", &corev1.PersistentVolumeClaim{})
		} else {
			testenv.Eventually(t, "the claims are gone", func() bool {
				return isGone(t, ns, "data-cache-0", &corev1.PersistentVolumeClaim{}) && isGone(t, ns, "data-cache-1", &corev1.PersistentVolumeClaim{})
			})
		}
		create(t, ns, "cache", stored, func(c *v1.ClusteredCache) { c.Spec.Version = "2" })
		want := ""
		if kept {
			want = "2 existing claims are reused, with what is on them: data-cache-0, data-cache-1"
		}
		if got := createdStatefulSet(settle(t, ns)).Reason; got != want {
			t.Errorf("%s: %q, want %q", retain, got, want)
		}
	}
}

func createdStatefulSet(f model.Fleet) model.Step {
	for _, o := range f.Caches[0].Outcomes {
		if o.Result == model.Created && o.Step.Target.Kind == "StatefulSet" {
			return o.Step
		}
	}
	return model.Step{Reason: "no StatefulSet was created"}
}
