package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
)

const (
	namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: Namespace
metadata: {name: catalog, labels: {pod-security.kubernetes.io/enforce: restricted}}
`
	sessions = `
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: sessions, namespace: shop}
spec:
  version: "1.6.18"
  size: 3
  resources: {limits: {memory: 64Mi}}
  deletion:
    drainSeconds: 1
    hooks:
    - name: copy
      image: clusteredcache.test/tool:1
      args: [copy, "archive-0.nodes-archive.shop.svc.cluster.local:11211", key-0, key-1, key-2, key-3, key-4]
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: archive, namespace: shop}
spec: {version: "1.6.18"}
`
	ordered = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ordered, namespace: shop, annotations: {cache.example.com/adopt-by: ordered}}
spec:
  serviceName: nodes-ordered
  podManagementPolicy: OrderedReady
  replicas: 0
  selector: {matchLabels: &labels {app.kubernetes.io/name: clusteredcache, app.kubernetes.io/instance: ordered}}
  template:
    metadata: {labels: *labels}
    spec: {containers: [{name: cache, image: "memcached:1.6.18"}]}
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: ordered, namespace: shop}
spec: {version: "1.6.18-next"}
`
)

// TestStory is the life of a cache. It uses only the shipped manifests and image.
func TestStory(t *testing.T) {
	for _, chapter := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"install", installed},
		{"a cache comes up", comesUp},
		{"keys are found through the node list", keysAreFound},
		{"scaled", scaled},
		{"rolled to another version", rolled},
		{"a bad image is put in and taken back", badImage},
		{"a node process is killed", nodeKilled},
		{"passes at the same time", passesAtTheSameTime},
		{"the pipeline and the plugin", pipeline},
		{"volumes grow", volumesGrow},
		{"deleted, with a hook that reads the nodes", deleted},
		{"a namespace is deleted", namespaceDeleted},
		{"the schedule", scheduled},
		{"rights are used", rightsAreUsed},
		{"namespaces with Roles only", rolesOnly},
	} {
		if !t.Run(chapter.name, chapter.run) {
			return
		}
	}
}

func installed(t *testing.T) {
	install(t)
	sh(t, "kubectl wait --for=condition=Established crd/clusteredcaches.cache.example.com --timeout=3m")
	apply(t, namespaces)
	if message := goodPass(t); !strings.Contains(message, "; 0 caches: ") {
		t.Errorf("termination message %q", message)
	}
}

func comesUp(t *testing.T) {
	apply(t, sessions)
	message := goodPass(t) // lingers until the nodes are ready
	c := cache(t, "shop", "sessions")
	if condition(c, v1.ConditionAvailable).Status != metav1.ConditionTrue || c.Status.CurrentVersion != "1.6.18" || len(c.Status.Nodes) != 3 {
		t.Errorf("after a pass: %+v", c.Status)
	}
	lines := strings.Split(strings.TrimSpace(message), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "Done: ") || !strings.Contains(last, "2 caches: 2 settled") {
		t.Errorf("the termination message ends with %q", last)
	}
}

func keysAreFound(t *testing.T) {
	nodes := cache(t, "shop", "sessions").Status.Nodes
	writeKeys(t, nodes)
	if n := found(t, nodes); n != len(keys()) {
		t.Errorf("%d of %d keys found", n, len(keys()))
	}
}

func scaled(t *testing.T) {
	sh(t, "kubectl scale clusteredcache -n shop sessions --replicas=4")
	goodPass(t)
	settled(t, "sessions", 4)
	nodes := cache(t, "shop", "sessions").Status.Nodes
	if len(nodes) != 4 {
		t.Fatalf("nodes %v", nodes)
	}
	if n := found(t, nodes[:3]); n != len(keys()) {
		t.Errorf("%d of %d keys are left on the nodes that were there", n, len(keys()))
	}
	writeKeys(t, nodes)
}

func rolled(t *testing.T) {
	nodes := cache(t, "shop", "sessions").Status.Nodes
	w := watch(t, nodes)
	spec(t, "shop", "sessions", `{"version":"1.6.18-next"}`)
	goodPass(t)
	settled(t, "sessions", 4)
	most, all := w.result()
	if most > 1 || all == 0 {
		t.Errorf("of %d nodes %d were silent at the same time, %d in all", len(nodes), most, all)
	}
	c := cache(t, "shop", "sessions")
	if c.Status.CurrentVersion != "1.6.18-next" || c.Status.UpdatedReplicas != 4 {
		t.Errorf("status %+v", c.Status)
	}
	for _, p := range podsOf(t, "sessions") {
		if image := p.Spec.Containers[0].Image; image != "docker.io/library/memcached:1.6.18-next" {
			t.Errorf("%s runs %s", p.Name, image)
		}
	}
	writeKeys(t, nodes)
}

// badImage gives two caches a bad image and takes it back. The StatefulSet controller
// itself heals the rollout of the first. The StatefulSet of the second was created by
// hand, and its controller would wait without end for the broken node.
func badImage(t *testing.T) {
	apply(t, ordered)
	goodPass(t)
	settled(t, "ordered", 1)
	nodes := cache(t, "shop", "sessions").Status.Nodes
	w := watch(t, nodes)
	for _, name := range []string{"sessions", "ordered"} {
		spec(t, "shop", name, `{"version":"nosuch"}`)
	}
	goodPass(t) // lingers, and leaves the rollouts to the next pass
	c := cache(t, "shop", "sessions")
	if c.Status.CurrentVersion != "1.6.18-next" || c.Status.ReadyReplicas != 3 || condition(c, v1.ConditionAvailable).Status == metav1.ConditionTrue {
		t.Errorf("status %+v", c.Status)
	}
	broken := get(t, "shop", "ordered-0", &corev1.Pod{})
	if image := broken.Spec.Containers[0].Image; image != "docker.io/library/memcached:nosuch" {
		t.Errorf("%s runs %s", broken.Name, image)
	}
	for _, name := range []string{"sessions", "ordered"} {
		spec(t, "shop", name, `{"version":"1.6.18-next"}`)
	}
	goodPass(t)
	settled(t, "sessions", 4)
	if most, _ := w.result(); most > 1 {
		t.Errorf("%d nodes were silent at the same time", most)
	}
	settled(t, "ordered", 1)
	sh(t, "kubectl delete clusteredcache -n shop ordered --wait=false")
}

// settled waits, with passes, until all nodes of a cache are ready.
func settled(t *testing.T, name string, size int32) {
	t.Helper()
	eventually(t, 5*time.Minute, name+" settles", func() bool {
		c := cache(t, "shop", name)
		if c.Status.ObservedGeneration == c.Generation && c.Status.ReadyReplicas == size && c.Status.UpdatedReplicas == size {
			return true
		}
		goodPass(t)
		return false
	})
}

func nodeKilled(t *testing.T) {
	p := podsOf(t, "sessions")[0]
	pid := processOf(t, string(p.UID), "memcached")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, "the node is started again", func() bool {
		now := get(t, "shop", p.Name, &corev1.Pod{}).Status.ContainerStatuses
		return len(now) == 1 && now[0].RestartCount == 1 && now[0].Ready
	})
	goodPass(t)
	settled(t, "sessions", 4)
	answer, err := ask(t.Context(), cache(t, "shop", "sessions").Status.Nodes[0], "version\r\n")
	if err != nil || !strings.HasPrefix(answer, "VERSION ") {
		t.Errorf("the node answers %q, %v", answer, err)
	}
}

func podsOf(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace("shop"), client.MatchingLabels{"app.kubernetes.io/instance": name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// processOf finds a pod's process by its control group. All processes of the node are
// in our process namespace.
func processOf(t *testing.T, uid, program string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		group, _ := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		comm, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
		if strings.Contains(string(group), uid) && strings.TrimSpace(string(comm)) == program {
			return pid
		}
	}
	t.Fatalf("no process %s in pod %s", program, uid)
	return 0
}

// passesAtTheSameTime runs a Job by hand and two passes as in a pipeline. The schedule
// may start another pass. Each write is made once, and all passes succeed.
func passesAtTheSameTime(t *testing.T) {
	before := get(t, "shop", "sessions", &appsv1.StatefulSet{}).Generation
	spec(t, "shop", "sessions", `{"args":["--threads=2"]}`)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if out, status := shell(t, "clusteredcache reconcile -A --wait"); status != 0 {
				t.Errorf("exit status %d: %s", status, out)
			}
		})
	}
	goodPass(t)
	group.Wait()
	settled(t, "sessions", 4)
	if s := get(t, "shop", "sessions", &appsv1.StatefulSet{}); s.Generation != before+1 {
		t.Errorf("the StatefulSet was changed %d times", s.Generation-before)
	}
}

// pipeline runs the commands of our example for GitLab unchanged, and checks that
// kubectl finds the plugin.
func pipeline(t *testing.T) {
	dir := filepath.Join(state, "pipeline")
	sh(t, "mkdir -p "+dir+"/caches")
	changed := strings.Replace(strings.Replace(sessions, "1.6.18", "1.6.18-next", 1), "size: 3", "size: 3\n  args: [--threads=3]", 1)
	if err := os.WriteFile(filepath.Join(dir, "caches", "caches.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	script := func(job string) string {
		return fmt.Sprintf("cd %s\nexport NAMESPACE=shop KUBECONFIG_DIFF=$KUBECONFIG KUBECONFIG_APPLY=$KUBECONFIG\n%s", dir, scriptOf(t, job))
	}
	if out, status := shell(t, script("diff")); status != 1 || !strings.Contains(out, "--threads=3") {
		t.Errorf("diff: exit status %d\n%s", status, out)
	}
	if out, status := shell(t, script("reconcile")); status != 0 || !strings.Contains(out, "0 failed") {
		t.Errorf("reconcile: exit status %d\n%s", status, out)
	}
	if out, status := shell(t, "kubectl clusteredcache diff -A"); status != 0 {
		t.Errorf("kubectl clusteredcache diff: exit status %d\n%s", status, out)
	}
	if nodes := cache(t, "shop", "sessions").Status.Nodes; len(nodes) != 3 {
		t.Errorf("nodes %v", nodes)
	}
}

// deleted deletes the cache. Its hook copies keys from its nodes to another cache.
func deleted(t *testing.T) {
	nodes := cache(t, "shop", "sessions").Status.Nodes
	writeKeys(t, nodes)
	sh(t, "kubectl delete clusteredcache -n shop sessions --wait=false")
	eventually(t, 5*time.Minute, "the cache is gone", func() bool {
		goodPass(t)
		err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "sessions"}, &v1.ClusteredCache{})
		return apierrors.IsNotFound(err)
	})
	archive := cache(t, "shop", "archive").Status.Nodes[0]
	for i := range 5 {
		answer, err := ask(t.Context(), archive, fmt.Sprintf("get key-%d\r\n", i))
		if err != nil || !strings.Contains(answer, fmt.Sprintf("value of key-%d", i)) {
			t.Errorf("the hook did not copy key-%d: %q, %v", i, answer, err)
		}
	}
	eventually(t, 3*time.Minute, "the nodes are gone", func() bool { return len(podsOf(t, "sessions")) == 0 })
}

// scheduled waits for a pass that the schedule has started.
func scheduled(t *testing.T) {
	eventually(t, 5*time.Minute, "a Job by the schedule succeeds", func() bool {
		jobs := &batchv1.JobList{}
		if err := cluster.List(t.Context(), jobs, client.InNamespace(system)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(jobs.Items, func(j batchv1.Job) bool {
			return !strings.HasPrefix(j.Name, "by-hand-") && j.Status.Succeeded == 1
		})
	})
}

// rolesOnly reduces the rights to Roles in shop and catalog, then deletes the Role in
// catalog. The pass reports that namespace and handles the other one.
func rolesOnly(t *testing.T) {
	install(t, "namespaces")
	sh(t, "kubectl delete clusterrolebinding clusteredcache; kubectl delete clusterrole clusteredcache")
	apply(t, `
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: small, namespace: shop}
spec: {version: "1.6.18"}
`)
	goodPass(t)
	settled(t, "small", 1)

	sh(t, "kubectl delete role -n catalog clusteredcache")
	spec(t, "shop", "small", `{"size":2}`)
	message, status := pass(t)
	if status != 3 || !strings.Contains(message, "namespace catalog") || !strings.HasSuffix(strings.TrimSpace(message), "; 1 namespace not listed") {
		t.Errorf("exit status %d: %s", status, message)
	}
	if s := get(t, "shop", "small", &appsv1.StatefulSet{}); *s.Spec.Replicas != 2 {
		t.Errorf("the pass did not scale the cache in the other namespace")
	}
}
