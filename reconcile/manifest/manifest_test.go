package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/manifest"
)

// Manifests are read as kubectl reads them, and what is wrong with one is said.
func TestReadManifests(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "---\n# nothing\n---\n{apiVersion: cache.example.com/v1, kind: ClusteredCache, metadata: {name: a}, spec: {version: '1', sise: 3}}\n")
	write("b.json", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"cache.example.com/v1","kind":"ClusteredCache","metadata":{"name":"b","namespace":"x"},"spec":{"version":"1"}},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}]}`)
	write("notes.txt", "not a manifest")
	m, err := manifest.Read([]string{dir}, nil, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Caches) != 2 || m.Caches[0].Err == nil || !strings.Contains(m.Caches[0].Err.Error(), "sise") || m.Caches[0].Cache.Namespace != "shop" || m.Caches[1].Cache.Namespace != "x" || !m.Namespaces["x"] {
		t.Errorf("%+v", m)
	}
	write("c.yaml", "{apiVersion: cache.example.com/v1, kind: ClusteredCache, metadata: {name: a}, spec: {version: '1'}}")
	for path, says := range map[string]string{dir: "twice", filepath.Join(dir, "nosuch"): "no such file", t.TempDir(): "holds no"} {
		if _, err := manifest.Read([]string{path}, nil, "shop"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	configMap := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`
	if _, err := manifest.Read([]string{"-"}, strings.NewReader(configMap+"\n"+configMap), "shop"); err == nil || !strings.Contains(err.Error(), "ConfigMap shop/settings is there twice") {
		t.Errorf("a ConfigMap that is there twice: %v", err)
	}
	one := `{"apiVersion":"cache.example.com/v1","kind":"ClusteredCache","metadata":{"name":"%s"},"spec":{"version":"1"}}`
	m, err = manifest.Read([]string{"-"}, strings.NewReader(fmt.Sprintf(one+"\n"+one, "a", "b")), "shop")
	if err != nil || len(m.Caches) != 2 {
		t.Errorf("JSON objects one after the other: %+v, %v", m, err)
	}
	for junk, says := range map[string]string{
		"a: [":      "is not YAML",
		"just text": "is not a Kubernetes object",
		"{}":        "is not a Kubernetes object",
		"kind: 3":   "kind: is a number and must be a string: put it in quotes",
		"{kind: ClusteredCache, metadata: {name: a, labels: {keep: y}}}": "metadata.labels: is a bool and must be a string: put it in quotes",
	} {
		if _, err := manifest.Read([]string{"-"}, strings.NewReader(junk), "shop"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", junk, err, says)
		}
	}
}

// What cannot be stored is said with its field, before a server is asked.
func TestManifestsThatCannotBeStored(t *testing.T) {
	for spec, says := range map[string]string{
		"{size: 3}":       "spec.version: Required value",
		"{version: null}": "spec.version: Required value",
		"{version: 1.6}":  "spec.version: is a number and must be a string: put it in quotes",
		"{version: '1', resources: {limits: {cpu: 1, memory: 512mib}}}":          `spec.resources.limits.memory: "512mib" is not a quantity such as 512Mi`,
		"{version: '1', resources: {requests: {cpu: true}}}":                     "spec.resources.requests.cpu: true is not a quantity",
		"{version: '1', engine: Custom, image: a, storage: {size: 10 gigabyte}}": `spec.storage.size: "10 gigabyte" is not a quantity`,
	} {
		text := "{apiVersion: cache.example.com/v1, kind: ClusteredCache, metadata: {name: a}, spec: " + spec + "}"
		m, err := manifest.Read([]string{"-"}, strings.NewReader(text), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Caches[0].Err; err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", spec, err, says)
		}
	}
}
