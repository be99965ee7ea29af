package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
)

const system = "clusteredcache-system"

// apply applies manifests with full rights.
func apply(t *testing.T, manifests string) {
	t.Helper()
	kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", write(t, filepath.Join(t.TempDir(), "manifests.yaml"), manifests))
}

var inPlace bool

// installed has the base in the cluster.
func installed(t *testing.T) {
	t.Helper()
	if inPlace {
		return
	}
	inPlace = true
	apply(t, kustomize(t))
	kubectl(t, "wait", "--for=condition=Established", "crd/clusteredcaches.cache.example.com", "--timeout=60s")
}

func exists(t *testing.T, ns, name string, o client.Object) bool {
	t.Helper()
	err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// Every component, and all that go together, apply to the API server as they are.
func TestComponentsApply(t *testing.T) {
	for _, ns := range []string{"shop", "catalog"} {
		apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}")
	}
	for _, c := range append(components, "", "namespaces sharded network-policy diff-only") {
		apply(t, kustomize(t, strings.Fields(c)...))
	}
}

// Every sample is a valid object.
func TestSamplesApply(t *testing.T) {
	installed(t)
	ns := env.Namespace(t)
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "deploy", "samples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		kubectl(t, "apply", "--server-side", "--dry-run=server", "-n", ns, "-f", f)
	}
	if r := clusteredcache(t, "render", "-f", filepath.Dir(files[0])); r.status != 0 {
		t.Errorf("render: %s", r.stderr)
	}
}

// A pass that starts from the CronJob's template cannot start: its image is
// missing. The Job ends at its deadline and leaves no pod behind.
func TestMissingImageLeavesNoPods(t *testing.T) {
	installed(t)
	c, container := cronJob(t, kustomize(t))
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "pass"}, Spec: c.Spec.JobTemplate.Spec}
	container.Image = "clusteredcache:broken"
	seconds := int64(3)
	job.Spec.ActiveDeadlineSeconds = &seconds
	job.Spec.Template.Spec = c.Spec.JobTemplate.Spec.Template.Spec
	job.Spec.Template.Spec.ServiceAccountName = "default"
	if err := env.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the Job fails at its deadline", func() bool {
		return exists(t, job.Namespace, "pass", job) && job.Status.Failed == 1
	})
	testenv.Eventually(t, "its pod is gone", func() bool {
		pods := &corev1.PodList{}
		if err := env.Client.List(t.Context(), pods, client.InNamespace(job.Namespace)); err != nil {
			t.Fatal(err)
		}
		return len(pods.Items) == 0
	})
}

// cacheIn makes a cache, and its children when settle is set.
func cacheIn(t *testing.T, ns, name string, settle bool) {
	t.Helper()
	apply(t, fmt.Sprintf(`
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: %s, namespace: %s}
spec: {version: "1.6.38", size: 2}
`, name, ns))
	if !settle {
		return
	}
	if r := clusteredcache(t, "reconcile", "-n", ns, "--wait", "--timeout=60s"); r.status != 0 {
		t.Fatalf("reconcile: %s%s", r.stdout, r.stderr)
	}
}

// Who is in the group sees exactly what the administrator sees in a diff, and
// can write nothing: neither caches nor children, nor by another request that
// the rights would allow.
func TestDiffOnly(t *testing.T) {
	apply(t, kustomize(t, "diff-only"))
	t.Cleanup(func() { inPlace = false })
	ns := env.Namespace(t)
	cacheIn(t, ns, "changed", true)
	cacheIn(t, ns, "fresh", false)
	kubectl(t, "patch", "clusteredcache", "-n", ns, "changed", "--type=merge", "-p", `{"spec":{"version":"1.6.39","size":1}}`)
	file := write(t, filepath.Join(t.TempDir(), "file.yaml"), fmt.Sprintf(`
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: changed, namespace: %[1]s}
spec: {version: "1.6.40", size: 3}
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: another, namespace: %[1]s}
spec: {version: "1.6.40"}
`, ns))
	as := []string{"--as=clusteredcache-diff", "--as-group=clusteredcache:diff"}
	enforced(t, ns, as)

	for _, args := range [][]string{{"diff", "-n", ns}, {"diff", "-f", file}} {
		want, got := clusteredcache(t, args...), clusteredcache(t, append(args, as...)...)
		if want.status != 1 || strings.Contains(want.stdout, "may not") {
			t.Fatalf("the administrator's diff is no measure: %d\n%s", want.status, want.stdout)
		}
		if got.status != want.status || got.stdout != want.stdout {
			t.Errorf("%v: exit status %d, of the administrator %d\n%s\nof the administrator:\n%s", args, got.status, want.status, got.stdout+got.stderr, want.stdout)
		}
	}
	before := kubectl(t, "get", "clusteredcaches,statefulsets,services,poddisruptionbudgets", "-n", ns, "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	for _, args := range []string{
		"create -f " + file,
		"patch clusteredcache fresh --type=merge -p {\"spec\":{\"size\":5}}",
		"patch statefulset changed --type=merge -p {\"spec\":{\"replicas\":0}}",
		"delete poddisruptionbudget changed",
		"delete clusteredcache fresh",
		"scale statefulset changed --replicas=0",
		"create configmap mine",
		"get secrets",
	} {
		r := run(t, filepath.Join(env.Assets, "kubectl"), append(strings.Fields(args), append(as, "-n", ns)...)...)
		if r.status == 0 || !strings.Contains(strings.ToLower(r.stderr), "forbidden") {
			t.Errorf("kubectl %s: exit status %d: %s", args, r.status, r.stderr)
		}
	}
	if r := clusteredcache(t, append([]string{"reconcile", "-n", ns}, as...)...); r.status != 3 {
		t.Errorf("reconcile: exit status %d\n%s", r.status, r.stdout+r.stderr)
	}
	if after := kubectl(t, "get", "clusteredcaches,statefulsets,services,poddisruptionbudgets", "-n", ns, "-o", "jsonpath={.items[*].metadata.resourceVersion}"); after != before {
		t.Errorf("something was written: %s, before %s", after, before)
	}
}

// enforced waits until the policy is in force: the API server learns of one
// within seconds.
func enforced(t *testing.T, ns string, as []string) {
	t.Helper()
	testenv.Eventually(t, "the policy is enforced", func() bool {
		args := append([]string{"label", "clusteredcache", "-n", ns, "fresh", "--overwrite", "written=" + fmt.Sprint(os.Getpid())}, as...)
		r := run(t, filepath.Join(env.Assets, "kubectl"), args...)
		return r.status != 0 && strings.Contains(r.stderr, "dry runs only")
	})
}

// The ServiceAccount for pipelines can be nobody else: its token does nothing
// alone and a diff as the group's member.
func TestDiffOnlyServiceAccount(t *testing.T) {
	apply(t, kustomize(t, "diff-only"))
	t.Cleanup(func() { inPlace = false })
	ns := env.Namespace(t)
	cacheIn(t, ns, "fresh", false)
	token := strings.TrimSpace(kubectl(t, "create", "token", "-n", system, "clusteredcache-diff"))
	for _, c := range []struct {
		flags  string
		status int
	}{
		{"", 5},
		{"--as=clusteredcache-diff --as-group=clusteredcache:diff", 1},
		{"--as=clusteredcache-diff", 5},
		{"--as=clusteredcache-diff --as-group=clusteredcache:diff --as-group=system:masters", 5},
		{"--as=administrator", 5},
	} {
		args := append([]string{"diff", "-n", ns, "--token=" + token}, strings.Fields(c.flags)...)
		if r := clusteredcache(t, args...); r.status != c.status {
			t.Errorf("%q: exit status %d, want %d\n%s", c.flags, r.status, c.status, r.stdout+r.stderr)
		}
	}
}

// One of several namespaces may not be listed: that is told, and the others are
// done. When none may be, nothing was.
func TestNamespaceWithoutRole(t *testing.T) {
	installed(t)
	mine, other := env.Namespace(t), env.Namespace(t)
	role := &rbacv1.Role{}
	for _, o := range objects(t, kustomize(t, "namespaces")) {
		if o.GetKind() == "Role" {
			o.SetNamespace(mine)
			if err := env.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			role.Name = o.GetName()
			break
		}
	}
	kubectl(t, "create", "rolebinding", "-n", mine, "passes", "--role="+role.Name, "--user=passes")
	cacheIn(t, mine, "cache", false)
	cacheIn(t, other, "cache", false)

	r := clusteredcache(t, "reconcile", "-n", mine, "-n", other, "--as=passes", "-o", "text", "-o", "json="+filepath.Join(t.TempDir(), "report.json"))
	for _, part := range []string{"Not listed: namespace " + other + ": user passes may not list ", "bind a Role there", "; 1 namespace not listed\n"} {
		if !strings.Contains(r.stdout, part) {
			t.Errorf("no %q in\n%s", part, r.stdout)
		}
	}
	if r.status != 3 {
		t.Errorf("exit status %d", r.status)
	}
	if !exists(t, mine, "cache", &appsv1.StatefulSet{}) || exists(t, other, "cache", &appsv1.StatefulSet{}) {
		t.Error("the namespace with a Role is to be done, and no other")
	}
	if r := clusteredcache(t, "diff", "-n", mine, "-n", other, "--as=passes"); r.status != 3 {
		t.Errorf("diff: exit status %d\n%s", r.status, r.stdout)
	}
	if r := clusteredcache(t, "reconcile", "-n", other, "--as=passes"); r.status != 5 {
		t.Errorf("the only namespace: exit status %d\n%s", r.status, r.stdout)
	}
}

// Who has the ClusterRole view, edit or admin in a namespace has it for caches.
func TestUserRoles(t *testing.T) {
	installed(t)
	ns := env.Namespace(t)
	for _, role := range []string{"view", "edit", "admin"} {
		kubectl(t, "create", "rolebinding", "-n", ns, role, "--clusterrole="+role, "--user="+role)
	}
	may := func(user, verb, resource string) bool {
		resource, sub, _ := strings.Cut(resource, "/")
		cmd := exec.Command(filepath.Join(env.Assets, "kubectl"), "auth", "can-i", verb, resource, "--subresource="+sub, "-n", ns, "--as="+user)
		return strings.TrimSpace(finish(t, cmd).stdout) == "yes"
	}
	testenv.Eventually(t, "the roles are aggregated", func() bool { return may("view", "get", "clusteredcaches") && may("edit", "create", "clusteredcaches") })
	for _, c := range []struct {
		user, verb, resource string
		want                 bool
	}{
		{"view", "watch", "clusteredcaches", true},
		{"view", "create", "clusteredcaches", false},
		{"edit", "delete", "clusteredcaches", true},
		{"edit", "patch", "clusteredcaches/scale", true},
		{"edit", "patch", "clusteredcaches/status", false},
		{"admin", "update", "clusteredcaches", true},
	} {
		if got := may(c.user, c.verb, c.resource); got != c.want {
			t.Errorf("%s may %s %s: %t", c.user, c.verb, c.resource, got)
		}
	}
}

// A pass over a CRD that is being deleted still lets go of the caches: the order
// of an uninstallation that went wrong.
func TestUninstallInTheWrongOrder(t *testing.T) {
	installed(t)
	t.Cleanup(func() { inPlace = false })
	ns := env.Namespace(t)
	cacheIn(t, ns, "cache", true)
	kubectl(t, "delete", "cronjob", "-n", system, "clusteredcache")
	kubectl(t, "delete", "crd", "clusteredcaches.cache.example.com", "--wait=false")
	testenv.Eventually(t, "the cache is being deleted", func() bool {
		c := &v1.ClusteredCache{}
		return exists(t, ns, "cache", c) && c.DeletionTimestamp != nil
	})
	if r := clusteredcache(t, "reconcile", "-A", "--wait", "--timeout=60s"); r.status != 0 {
		t.Errorf("exit status %d\n%s", r.status, r.stdout+r.stderr)
	}
	kubectl(t, "wait", "--for=delete", "crd/clusteredcaches.cache.example.com", "--timeout=60s")
}
