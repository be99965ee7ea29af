package observe

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/plan"
	"example.com/clusteredcache/reconcile/resources"
)

// ManifestError says that a document in Source, a file, cannot be used.
type ManifestError struct {
	Source string
	Err    error
}

func (e *ManifestError) Error() string { return e.Source + ": " + e.Err.Error() }

func (e *ManifestError) Unwrap() error { return e.Err }

// Manifest is a ClusteredCache as a file has it.
type Manifest struct {
	// Source is the file, for messages.
	Source string
	Cache  *v1.ClusteredCache
	// Err says why the document cannot be used; Cache then has its name only.
	Err error
}

// Manifests is what a stream of manifests holds.
type Manifests struct {
	// Caches in the order of the stream.
	Caches []Manifest
	// ConfigMaps and Namespaces count as if applied.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	Namespaces map[string]bool
	// Skipped counts the objects of other kinds, by kind.
	Skipped map[string]int
}

// ReadManifests reads files, directories (their *.yaml, *.yml and *.json, not
// further down) and, for "-", stdin. Objects without a namespace are in
// namespace. The error is for what cannot be read as manifests at all; a cache
// that cannot be used is a Manifest with an error.
func ReadManifests(paths []string, stdin io.Reader, namespace string) (*Manifests, error) {
	m := &Manifests{
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

// read takes every document of a stream.
func (m *Manifests) read(source string, r io.Reader, namespace string) error {
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

// objects takes JSON objects apart that follow each other without a separator;
// a YAML reader would see the first alone. Anything else is one object.
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

// head is what every object has, and a List.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

func (m *Manifests) add(source string, document []byte, namespace string) error {
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("is not YAML: %w", err)
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return nil // nothing between two separators
	}
	var h head
	err = json.Unmarshal(raw, &h)
	if wrong := mistyped(err); wrong != nil {
		return wrong
	}
	if err != nil || h.Kind == "" {
		return errors.New("is no Kubernetes object: apiVersion, kind and metadata are needed")
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
		return m.addCache(Manifest{Source: source}, key, raw)
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

func (m *Manifests) addCache(manifest Manifest, key types.NamespacedName, raw []byte) error {
	if key.Name == "" {
		return errors.New("ClusteredCache without metadata.name")
	}
	for _, other := range m.Caches {
		if other.Cache.Namespace == key.Namespace && other.Cache.Name == key.Name {
			return fmt.Errorf("ClusteredCache %s is there twice, also in %s: keep one", key, other.Source)
		}
	}
	manifest.Cache = &v1.ClusteredCache{}
	if err := decodeStrictly(raw, manifest.Cache); err != nil {
		manifest.Err = &ManifestError{Source: manifest.Source, Err: err}
		manifest.Cache = &v1.ClusteredCache{}
	}
	manifest.Cache.Namespace, manifest.Cache.Name = key.Namespace, key.Name
	m.Caches = append(m.Caches, manifest)
	return nil
}

// decodeStrictly refuses what a server that validates fields strictly would.
func decodeStrictly(raw []byte, cache *v1.ClusteredCache) error {
	strict, err := kjson.UnmarshalStrict(raw, cache)
	if err != nil {
		err = cmp.Or(mistyped(err), wrongQuantity(raw), err)
	}
	if err == nil && len(strict) > 0 {
		texts := make([]string, 0, len(strict))
		for _, e := range strict {
			texts = append(texts, e.Error())
		}
		err = errors.New(strings.Join(texts, "; "))
	}
	if err == nil && cache.APIVersion != v1.GroupVersion.String() {
		err = fmt.Errorf("apiVersion %s is not known here, %s is", cache.APIVersion, v1.GroupVersion)
	}
	if err == nil && cache.Spec.Size == 0 && hasSpec(raw, "size") {
		err = errors.New("spec.size: " + v1.MessageSize) // left out it would have a default
	}
	if err == nil && cache.Spec.Version == "" && !hasSpec(raw, "version") {
		err = errors.New("spec.version: Required value") // we would send an empty one
	}
	return err
}

// mistyped names the field that is of another type than it must be; nil: the
// error is another, or the whole document is no object.
func mistyped(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return nil
	}
	err = fmt.Errorf("%s: is a %s and must be a %s", wrong.Field, wrong.Value, wrong.Type)
	if wrong.Type.Kind() == reflect.String {
		err = fmt.Errorf("%w: put it in quotes", err)
	}
	return err
}

// wrongQuantity names the first quantity that is none; the decoder tells of it
// without its field. nil: there is none.
func wrongQuantity(raw []byte) error {
	var manifest struct {
		Spec struct {
			Resources map[string]map[string]json.RawMessage `json:"resources"`
			Storage   map[string]json.RawMessage            `json:"storage"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(raw, &manifest) // what is of another type stays empty
	quantities := map[string]json.RawMessage{"spec.storage.size": manifest.Spec.Storage["size"]}
	for list, amounts := range manifest.Spec.Resources {
		for name, amount := range amounts {
			quantities["spec.resources."+list+"."+name] = amount
		}
	}
	for _, field := range slices.Sorted(maps.Keys(quantities)) {
		amount := quantities[field]
		if amount != nil && new(resource.Quantity).UnmarshalJSON(amount) != nil {
			return fmt.Errorf("%s: %s is no quantity, such as 512Mi or 500m", field, amount)
		}
	}
	return nil
}

// hasSpec tells a field of spec that is left out from one that is zero.
func hasSpec(raw []byte, field string) bool {
	var manifest struct {
		Spec map[string]any `json:"spec"`
	}
	return json.Unmarshal(raw, &manifest) == nil && manifest.Spec[field] != nil
}

// Config is what the stream says of the ConfigMap that a cache's spec names.
func (m *Manifests) Config(cache *v1.ClusteredCache) plan.Config {
	if cache.Spec.Config == nil {
		return plan.Config{}
	}
	cm, ok := m.ConfigMaps[types.NamespacedName{Namespace: cache.Namespace, Name: cache.Spec.Config.Name}]
	if !ok {
		return plan.Config{Missing: true}
	}
	return plan.Config{Hash: resources.ConfigHash(cm)}
}
