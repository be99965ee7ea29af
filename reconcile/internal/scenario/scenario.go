// Package scenario reads the folders under testdata/scenarios. Each folder shows one
// situation of one cache:
//
//	cache.yaml   the ClusteredCache as stored; its first line says what to learn
//	config.yaml  the ConfigMap that it names, if that exists
//	live.yaml    the children that exist already, if any
//	*.golden.*   the results of the packages
package scenario

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "example.com/clusteredcache/api/v1"
)

// Scenario is one folder.
type Scenario struct {
	// Name is the name of the folder, and Dir its path.
	Name, Dir string
	// Cache is the ClusteredCache, with the defaults of the server.
	Cache *v1.ClusteredCache
	// ConfigMap is the one that the cache names. It is nil if it does not exist.
	ConfigMap *corev1.ConfigMap
	// Live are the other objects that exist. Most scenarios have StatefulSets,
	// Services and PodDisruptionBudgets. Only some passes read Pods,
	// PersistentVolumeClaims and StorageClasses; the claims may be those of an
	// earlier cache. If the cache is being deleted, Live may also have the Jobs of
	// its hooks, their Pods, and the Namespace.
	Live []runtime.Object
}

// Each runs f once for every scenario, as a subtest with its name.
func Each(t *testing.T, f func(t *testing.T, s Scenario)) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(filepath.Join(root, "testdata", "scenarios", "*", "cache.yaml"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no scenarios under %s: %v", root, err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			s, err := load(dir)
			if err != nil {
				t.Fatal(err)
			}
			f(t, s)
		})
	}
}

// Load returns the scenario with that name.
func Load(t testing.TB, name string) Scenario {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(filepath.Join(root, "testdata", "scenarios", name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// moduleRoot returns the nearest parent folder with a go.mod. Tests run in the
// folder of their package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

// load reads the scenario in dir.
func load(dir string) (Scenario, error) {
	s := Scenario{Name: filepath.Base(dir), Dir: dir}
	caches, err := decodeFile[*v1.ClusteredCache](filepath.Join(dir, "cache.yaml"))
	if err != nil {
		return s, err
	}
	if len(caches) != 1 {
		return s, fmt.Errorf("%s: want one ClusteredCache in cache.yaml, found %d", dir, len(caches))
	}
	s.Cache = caches[0]
	s.Cache.Default()

	configs, err := decodeFile[*corev1.ConfigMap](filepath.Join(dir, "config.yaml"))
	if err != nil {
		return s, err
	}
	if len(configs) > 0 {
		s.ConfigMap = configs[0]
	}
	s.Live, err = decodeFile[runtime.Object](filepath.Join(dir, "live.yaml"))
	return s, err
}

// decoder refuses unknown and repeated fields. Otherwise a scenario could contain a
// field that has no effect.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// decodeFile reads every document of a YAML file. Each must be a T. A missing file
// has no documents.
func decodeFile[T runtime.Object](path string) ([]T, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var objects []T
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if isOnlyComment(document) {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		typed, isTyped := object.(T)
		if !isTyped {
			return nil, fmt.Errorf("%s: a %T does not belong here", path, object)
		}
		objects = append(objects, typed)
	}
}

// isOnlyComment reports whether a YAML document has no content.
func isOnlyComment(document []byte) bool {
	for text := range bytes.Lines(document) {
		text = bytes.TrimSpace(text)
		if len(text) > 0 && text[0] != '#' && !bytes.Equal(text, []byte("---")) {
			return false
		}
	}
	return true
}
