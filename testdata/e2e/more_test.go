package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
)

// scriptOf is what GitLab would run for a job of our example, less the download.
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

// volumesGrow makes a cache with volumes, and asks for larger ones.
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
	goodPass(t)
	if c := cache(t, "shop", "stored"); condition(c, v1.ConditionReconciling).Reason != v1.ReasonConfigMapNotFound {
		t.Errorf("without its ConfigMap: %+v", c.Status.Conditions)
	}
	sh(t, "kubectl create configmap -n shop stored --from-literal=a=b")
	goodPass(t)
	settled(t, "stored", 1)
	spec(t, "shop", "stored", `{"storage":{"size":"2Gi"}}`)
	goodPass(t)
	eventually(t, time.Minute, "the claim asks for more", func() bool {
		claims := &corev1.PersistentVolumeClaimList{}
		if err := cluster.List(t.Context(), claims); err != nil {
			t.Fatal(err)
		}
		return len(claims.Items) == 1 && claims.Items[0].Spec.Resources.Requests.Storage().String() == "2Gi"
	})
	sh(t, "kubectl delete clusteredcache -n shop stored --wait=false")
	goodPass(t)
}

// namespaceDeleted deletes a namespace with a cache in it that has a hook: the
// cache does not keep the namespace.
func namespaceDeleted(t *testing.T) {
	apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: gone}
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
	goodPass(t)
	spec(t, "gone", "gone", `{"size":1}`) // and its disruption budget goes
	goodPass(t)
	sh(t, "kubectl delete namespace gone --wait=false")
	goodPass(t)
	eventually(t, 2*time.Minute, "the namespace is gone", func() bool {
		return apierrors.IsNotFound(cluster.Get(t.Context(), types.NamespacedName{Name: "gone"}, &corev1.Namespace{}))
	})
}
