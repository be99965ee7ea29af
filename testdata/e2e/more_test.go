package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
)

// scriptOf returns what GitLab would run for a job of our example, without the
// download.
func scriptOf(t *testing.T, job string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "ci", "gitlab-ci.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var jobs map[string]struct {
		Script []string `json:"script"`
	}
	if err := yaml.Unmarshal(text, &jobs); err != nil {
		t.Fatal(err)
	}
	if len(jobs[job].Script) == 0 {
		t.Fatalf("no job %s", job)
	}
	return strings.Join(jobs[job].Script, "\n")
}

// meanwhile runs a shell command while the test runs, at most as long as a pass may
// take. The channel closes when the command has ended.
func meanwhile(t *testing.T, command string) <-chan struct{} {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if out, status := shell(t, "timeout 120 sh -ec '"+strings.ReplaceAll(command, "'", `'\''`)+"'"); status != 0 {
			t.Errorf("meanwhile: exit status %d\n%s", status, out)
		}
	}()
	return ended
}

// volumesGrow creates a cache with volumes, and asks for larger ones. No storage
// driver here can make them larger, so the test writes the new size to the status.
func volumesGrow(t *testing.T) {
	apply(t, `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard}
provisioner: kubernetes.io/host-path
allowVolumeExpansion: true
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: stored, namespace: shop}
spec:
  engine: Custom
  image: docker.io/library/memcached
  version: "1.6.18"
  port: 11211
  config: {name: stored}
  storage: {size: 1Gi, storageClassName: standard}
`)
	made := meanwhile(t, `
		until kubectl get clusteredcache -n shop stored -o 'jsonpath={.status.conditions}' | grep -q ConfigMapNotFound; do sleep 0.5; done
		kubectl create configmap -n shop stored --from-literal=a=b`)
	goodPass(t)
	<-made
	settled(t, "stored", 1)
	spec(t, "shop", "stored", `{"storage":{"size":"2Gi"}}`)
	grown := meanwhile(t, `
		claim=$(kubectl get persistentvolumeclaims -n shop -o name)
		until [ "$(kubectl get -n shop "$claim" -o 'jsonpath={.spec.resources.requests.storage}')" = 2Gi ]; do sleep 0.5; done
		kubectl patch -n shop "$claim" --subresource=status --type=merge -p '{"status":{"capacity":{"storage":"2Gi"}}}'`)
	goodPass(t)
	<-grown
	settled(t, "stored", 1)
	sts := get(t, "shop", "stored", &appsv1.StatefulSet{})
	if size := sts.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); size != "2Gi" {
		t.Errorf("the StatefulSet asks for %s", size)
	}
	sh(t, "kubectl delete clusteredcache -n shop stored --wait=false")
	goodPass(t)
}

// namespaceDeleted deletes a namespace that has a cache with a hook. The cache must
// not keep the namespace.
func namespaceDeleted(t *testing.T) {
	apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: gone}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: gone}
spec: {hard: {pods: "0"}}
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: gone, namespace: gone}
spec:
  version: "1.6.18"
  size: 2
  deletion:
    hooks: [{name: never, image: "clusteredcache.test/tool:1"}]
`)
	// For a while the pass sees why the pods are missing.
	allowed := meanwhile(t, `
		until kubectl get events -n gone | grep -q FailedCreate; do sleep 0.5; done
		sleep 4
		kubectl delete resourcequota -n gone none`)
	goodPass(t)
	<-allowed
	spec(t, "gone", "gone", `{"size":1}`) // removes its disruption budget too
	goodPass(t)
	sh(t, "kubectl delete namespace gone --wait=false")
	eventually(t, time.Minute, "the cache is being deleted", func() bool {
		c := &v1.ClusteredCache{}
		err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "gone", Name: "gone"}, c)
		return apierrors.IsNotFound(err) || err == nil && c.DeletionTimestamp != nil // the schedule may be faster
	})
	goodPass(t)
	eventually(t, 4*time.Minute, "the namespace is gone", func() bool {
		return apierrors.IsNotFound(cluster.Get(t.Context(), types.NamespacedName{Name: "gone"}, &corev1.Namespace{}))
	})
}
