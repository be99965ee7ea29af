package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "example.com/clusteredcache/api/v1"
)

func TestEveryScenarioSaysWhatToLearn(t *testing.T) {
	Each(t, func(t *testing.T, s Scenario) {
		content, err := os.ReadFile(filepath.Join(s.Dir, "cache.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(content), "\n"); !strings.HasPrefix(first, "# ") {
			t.Errorf("the first line of cache.yaml is %q, want a comment that says what to learn", first)
		}
		if s.Cache.UID == "" || s.Cache.Namespace == "" {
			t.Error("cache.yaml shows a stored cache: it needs a uid and a namespace")
		}
		if config := s.Cache.Spec.Config; s.ConfigMap != nil && (config == nil || config.Name != s.ConfigMap.Name) {
			t.Errorf("config.yaml holds %s, which the cache does not name", s.ConfigMap.Name)
		}
	})
}

func TestLoadAppliesDefaults(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cache.yaml", `# minimal
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: c, namespace: shop}
spec: {version: "1", storage: {size: 1Gi}}
`)
	s, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	spec := s.Cache.Spec
	if spec.Engine != v1.EngineMemcached || spec.Size != 1 || spec.Storage.Retain != v1.RetainPolicyRetain {
		t.Errorf("got %+v", spec)
	}
	if s.Cache.Status.ObservedGeneration != -1 {
		t.Errorf("observedGeneration %d, want -1", s.Cache.Status.ObservedGeneration)
	}
	if s.ConfigMap != nil || s.Live != nil {
		t.Errorf("got %v and %v from files that do not exist", s.ConfigMap, s.Live)
	}
}

func TestLoadReadsLiveObjects(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cache.yaml", "apiVersion: cache.example.com/v1\nkind: ClusteredCache\nmetadata: {name: c}\nspec: {version: '1'}\n")
	write(t, dir, "live.yaml", `# what exists
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: c}
---
apiVersion: v1
kind: Service
metadata: {name: c}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: c}
`)
	s, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range s.Live {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	if got := strings.Join(kinds, " "); got != "StatefulSet Service PodDisruptionBudget" {
		t.Errorf("got %q", got)
	}
}

func TestLoadRefusesUnknownFields(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cache.yaml", "apiVersion: cache.example.com/v1\nkind: ClusteredCache\nmetadata: {name: c}\nspec: {version: '1', sise: 3}\n")
	if _, err := load(dir); err == nil || !strings.Contains(err.Error(), "sise") {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
