package stories_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

func create(t *testing.T, ns, name string, change ...func(*v1.ClusteredCache)) *v1.ClusteredCache {
	t.Helper()
	c := &v1.ClusteredCache{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       v1.ClusteredCacheSpec{Size: 3, Version: "1.6.38"},
	}
	for _, f := range change {
		f(c)
	}
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func get[T client.Object](t *testing.T, ns, name string, o T) T {
	t.Helper()
	if err := env.Client.Get(context.Background(), client.ObjectKey{Namespace: ns, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// versions are the resourceVersions of every cache and child in a namespace.
func versions(t *testing.T, ns string) map[string]string {
	t.Helper()
	v := map[string]string{}
	for _, list := range []client.ObjectList{&v1.ClusteredCacheList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}} {
		if err := env.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		if err := apimeta.EachListItem(list, func(o runtime.Object) error {
			v[fmt.Sprintf("%T/%s", o, o.(client.Object).GetName())] = o.(client.Object).GetResourceVersion()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func verdict(t *testing.T, f model.Fleet, name string) model.Verdict {
	t.Helper()
	for _, c := range f.Caches {
		if c.Name == name {
			return c.Verdict
		}
	}
	t.Fatalf("no report of %s in %+v", name, f)
	return model.Verdict{}
}

// productClient is the client that the program makes; hook, if not nil, is
// called before each request with its number from 1.
func productClient(t *testing.T, hook func(n int, r *http.Request)) client.Client {
	t.Helper()
	return clientOf(t, env, hook)
}

func clientOf(t *testing.T, env *testenv.Env, hook func(n int, r *http.Request)) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	if hook != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &hooked{next: next, hook: hook} })
	}
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type hooked struct {
	next http.RoundTripper
	hook func(n int, r *http.Request)
	mu   sync.Mutex
	n    int
}

func (h *hooked) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.n++
	n := h.n
	h.mu.Unlock()
	h.hook(n, r)
	return h.next.RoundTrip(r)
}

// pass makes one pass over namespaces.
func pass(t *testing.T, namespaces ...string) model.Fleet {
	t.Helper()
	return runWith(t, productClient(t, nil), reconcile.Options{Scope: observe.Scope{Namespaces: namespaces}, Concurrency: 4})
}

// frozen starts a control plane of the test's own in which nothing moves by
// itself: an API server without controllers.
func frozen(t *testing.T) *testenv.Env {
	t.Helper()
	e, err := testenv.Start("--controller-manager=false")
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

func passOn(t *testing.T, env *testenv.Env, namespaces ...string) model.Fleet {
	t.Helper()
	return runWith(t, clientOf(t, env, nil), reconcile.Options{Scope: observe.Scope{Namespaces: namespaces}, Concurrency: 4})
}

// settle makes passes until everything has settled, is stalled or failed.
func settle(t *testing.T, namespaces ...string) model.Fleet {
	t.Helper()
	f := runWith(t, productClient(t, nil), reconcile.Options{
		Scope: observe.Scope{Namespaces: namespaces}, Concurrency: 4, Wait: true, Timeout: time.Minute,
	})
	if f.TimedOut {
		t.Fatalf("not settled within a minute: %+v", f.Caches)
	}
	return f
}

func runWith(t *testing.T, c client.Client, o reconcile.Options) model.Fleet {
	t.Helper()
	f, err := reconcile.Run(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// wantNothingToDo makes a pass that must neither write nor have anything to say.
func wantNothingToDo(t *testing.T, namespaces ...string) {
	t.Helper()
	before := map[string]map[string]string{}
	for _, ns := range namespaces {
		before[ns] = versions(t, ns)
	}
	if f := pass(t, namespaces...); len(f.Caches) != 0 || f.Total == 0 {
		t.Errorf("a pass over a converged fleet has something to say: %+v", f)
	}
	for _, ns := range namespaces {
		if diff := cmp.Diff(before[ns], versions(t, ns)); diff != "" {
			t.Errorf("a pass over a converged fleet wrote:\n%s", diff)
		}
	}
}

func wantVerdict(t *testing.T, f model.Fleet, name string, state model.State, reason string) {
	t.Helper()
	if v := verdict(t, f, name); v.State != state || v.Reason != reason {
		t.Errorf("%s: %+v, want %s (%s)", name, v, state, reason)
	}
}

// stepOf is the first step of a cache on a kind of object.
func stepOf(f model.Fleet, name string, kind model.Kind) model.Step {
	for _, c := range f.Caches {
		for _, o := range c.Outcomes {
			if c.Name == name && o.Step.Target.Kind == kind && o.Result != model.Failed && o.Step.Action == model.ActionChange {
				return o.Step
			}
		}
	}
	return model.Step{}
}

func changesOf(f model.Fleet, name string, kind model.Kind) []fields.Change {
	return stepOf(f, name, kind).Changes
}

func update(t *testing.T, c *v1.ClusteredCache, change func(*v1.ClusteredCache)) {
	t.Helper()
	before := get(t, c.Namespace, c.Name, &v1.ClusteredCache{})
	after := before.DeepCopy()
	change(after)
	if err := env.Client.Patch(t.Context(), after, client.MergeFrom(before), client.FieldOwner("user")); err != nil {
		t.Fatal(err)
	}
}

func patch(t *testing.T, o client.Object, merge string, opts ...client.PatchOption) {
	t.Helper()
	if err := env.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(merge)), opts...); err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, ns, name string, o client.Object) {
	t.Helper()
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, o); !apierrors.IsNotFound(err) {
		t.Errorf("%T %s/%s should not exist (%v)", o, ns, name, err)
	}
}

func meta(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

func unstructuredCache(t *testing.T, ns, name string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind))
	return get(t, ns, name, u).Object
}

func cmpDiff(before, after any) string { return cmp.Diff(before, after) }

func condition(c *v1.ClusteredCache, kind string) metav1.Condition {
	if p := apimeta.FindStatusCondition(c.Status.Conditions, kind); p != nil {
		return *p
	}
	return metav1.Condition{}
}

func available(c *v1.ClusteredCache) metav1.ConditionStatus {
	return condition(c, v1.ConditionAvailable).Status
}

// refuseStatefulSets sets a quota of none. Its status is written here, since
// the quota controller does not run; admission goes by it.
func refuseStatefulSets(t *testing.T, ns string) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"}}
	q.Spec.Hard = corev1.ResourceList{"count/statefulsets.apps": resource.MustParse("0")}
	if err := env.Client.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: q.Spec.Hard}
	if err := env.Client.Status().Update(t.Context(), q); err != nil {
		t.Fatal(err)
	}
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func labelSelector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// readers gives user "reader" the right to read what a pass reads.
func readers(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "apps", "policy", v1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "reader"}}}
	for _, o := range []client.Object{role, binding} {
		mustCreate(t, o)
		t.Cleanup(func() { _ = env.Client.Delete(context.Background(), o) })
	}
}

func asUser(config *rest.Config, name string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate.UserName = name
	return config
}

// rewritePolicy makes admission pull images of labelled namespaces from a mirror.
func rewritePolicy(t *testing.T) []map[string]any {
	t.Helper()
	var objects []map[string]any
	for _, document := range strings.Split(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mirror}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {rewrite: "yes"}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [statefulsets]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image",
          value: object.spec.template.spec.containers[0].image.replace("docker.io/", "mirror.example.com/")}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mirror}
spec: {policyName: mirror}
`, "---") {
		o := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

type (
	v1Resource = corev1.ResourceName
	quantityOf = resource.Quantity
)
