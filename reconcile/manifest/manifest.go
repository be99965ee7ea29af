package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// Error reports that a document in the file Source cannot be used.
type Error struct {
	Source string
	Err    error
}

func (e *Error) Error() string { return e.Source + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Document is a ClusteredCache as a file describes it.
type Document struct {
	// Source is the name of the file, for messages.
	Source string
	Cache  *v1.ClusteredCache
	// Err is why the document cannot be used. Cache then has only its name and
	// namespace.
	Err error
}

// Set holds the contents of a stream of manifests.
type Set struct {
	// Caches are in the order of the stream.
	Caches []Document
	// ConfigMaps and Namespaces count as applied.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	Namespaces map[string]bool
	// Skipped counts the objects of other kinds, by kind.
	Skipped map[string]int
}

// Read reads each of paths: a file, a directory, or stdin for "-". Of a directory
// it reads the files *.yaml, *.yml and *.json, but no subdirectories. Objects
// without a namespace belong to namespace.
//
// The error reports input that cannot be read as manifests. A cache that cannot be
// used is a Document with an error.
func Read(paths []string, stdin io.Reader, namespace string) (*Set, error) {
	m := &Set{
		ConfigMaps: map[types.NamespacedName]*corev1.ConfigMap{},
		Namespaces: map[string]bool{},
		Skipped:    map[string]int{},
	}
	for _, path := range paths {
		if path == "-" {
			if err := m.read("standard input", stdin, namespace); err != nil {
				return nil, err
			}
			continue
		}
		files, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if err := m.read(file, bytes.NewReader(content), namespace); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// filesAt returns the file at path, or the manifests in the directory at path.
func filesAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the directory holds no .yaml, .yml or .json file", path)
	}
	return files, nil
}

// read adds every document of a stream.
func (m *Set) read(source string, r io.Reader, namespace string) error {
	documents := yamlutil.NewYAMLReader(bufio.NewReader(r))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		for _, object := range objects(document) {
			if err := m.add(source, object, namespace); err != nil {
				return fmt.Errorf("%s, document %d: %w", source, n, err)
			}
		}
	}
}

// objects splits a document of JSON objects that follow each other without a
// separator. A YAML reader would see only the first. Any other document is returned
// as one object.
func objects(document []byte) [][]byte {
	var list [][]byte
	for decoder := json.NewDecoder(bytes.NewReader(document)); ; {
		var object json.RawMessage
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF) && len(list) > 1:
			return list
		case err != nil:
			return [][]byte{document}
		}
		list = append(list, object)
	}
}

// head holds the fields that every object has, and the items of a List.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// add adds an object, or the items of a List.
func (m *Set) add(source string, document []byte, namespace string) error {
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("is not YAML: %w", err)
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return nil // an empty document
	}
	var h head
	err = json.Unmarshal(raw, &h)
	if wrong := mistyped(err); wrong != nil {
		return wrong
	}
	if err != nil || h.Kind == "" {
		return errors.New("is not a Kubernetes object: apiVersion, kind and metadata are required")
	}
	if h.Items != nil && strings.HasSuffix(h.Kind, "List") {
		for _, item := range h.Items {
			if err := m.add(source, item, namespace); err != nil {
				return err
			}
		}
		return nil
	}
	key := types.NamespacedName{Namespace: cmp.Or(h.Metadata.Namespace, namespace), Name: h.Metadata.Name}
	group, _, _ := strings.Cut(h.APIVersion, "/")
	switch {
	case h.Kind == v1.Kind && group == v1.GroupVersion.Group:
		return m.addCache(Document{Source: source}, key, raw)
	case h.Kind == "ConfigMap" && h.APIVersion == "v1":
		cm := &corev1.ConfigMap{}
		if err := json.Unmarshal(raw, cm); err != nil {
			return fmt.Errorf("ConfigMap %s: %w", key, err)
		}
		if _, twice := m.ConfigMaps[key]; twice {
			return fmt.Errorf("ConfigMap %s is there twice: keep one", key)
		}
		m.ConfigMaps[key] = cm
	case h.Kind == "Namespace" && h.APIVersion == "v1":
		m.Namespaces[h.Metadata.Name] = true
	default:
		m.Skipped[h.Kind]++
	}
	return nil
}

// addCache adds a ClusteredCache. If it does not decode, the Document has an error.
func (m *Set) addCache(d Document, key types.NamespacedName, raw []byte) error {
	if key.Name == "" {
		return errors.New("ClusteredCache without metadata.name")
	}
	if other := m.Document(key); other != nil {
		return fmt.Errorf("ClusteredCache %s is there twice, also in %s: keep one", key, other.Source)
	}
	d.Cache = &v1.ClusteredCache{}
	if err := decodeStrictly(raw, d.Cache); err != nil {
		d.Err = &Error{Source: d.Source, Err: err}
		d.Cache = &v1.ClusteredCache{}
	}
	d.Cache.Namespace, d.Cache.Name = key.Namespace, key.Name
	m.Caches = append(m.Caches, d)
	return nil
}

// Document returns the cache of this name, or nil if the manifests do not have it.
// It has an error if the file's document cannot be used.
func (m *Set) Document(key types.NamespacedName) *Document {
	i := slices.IndexFunc(m.Caches, func(d Document) bool { return d.Key() == key })
	if i < 0 {
		return nil
	}
	return &m.Caches[i]
}

// Key returns the namespace and name of the cache.
func (d Document) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: d.Cache.Namespace, Name: d.Cache.Name}
}

// Config returns the content hash of the ConfigMap that the cache's spec names, or
// that the manifests do not have it.
func (m *Set) Config(cache *v1.ClusteredCache) model.Config {
	if cache.Spec.Config == nil {
		return model.Config{}
	}
	cm, ok := m.ConfigMaps[types.NamespacedName{Namespace: cache.Namespace, Name: cache.Spec.Config.Name}]
	if !ok {
		return model.Config{Missing: true}
	}
	return model.Config{Hash: resources.ConfigHash(cm)}
}
