package resources_test

import (
	"fmt"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/clusteredcache/reconcile/resources"
)

func data(pairs ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{Data: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		cm.Data[pairs[i]] = pairs[i+1]
	}
	return cm
}

func TestConfigHashTellsContentsApart(t *testing.T) {
	seen := map[string]int{}
	for i, cm := range []*corev1.ConfigMap{
		nil,
		{},
		data("a", ""),
		data("", "a"),
		data("a", "b"),
		data("ab", ""),
		data("a", "b", "c", "d"),
		data("a", "bc", "d", ""),
		data("a", "bcd"),
		data("a", "b\x00c"),
		data("b", "a"),
		{BinaryData: map[string][]byte{"a": {0xff}}},
	} {
		hash := resources.ConfigHash(cm)
		if earlier, twice := seen[hash]; twice {
			t.Errorf("contents %d and %d have one hash, %q", earlier, i, hash)
		}
		seen[hash] = i
	}
}

func TestConfigHashIsOfTheFilesAlone(t *testing.T) {
	want := resources.ConfigHash(data("a", "1", "b", "2"))
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(want) {
		t.Errorf("hash is %q", want)
	}
	for name, cm := range map[string]*corev1.ConfigMap{
		"other order": data("b", "2", "a", "1"),
		"metadata": {
			ObjectMeta: metav1.ObjectMeta{
				Name: "cfg", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			},
			Data: map[string]string{"a": "1", "b": "2"},
		},
		"same files from binaryData": {
			Data:       map[string]string{"a": "1"},
			BinaryData: map[string][]byte{"b": []byte("2")},
		},
	} {
		if got := resources.ConfigHash(cm); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	many := data()
	for i := range 100 {
		many.Data[fmt.Sprint(i)] = "x"
	}
	first := resources.ConfigHash(many)
	for range 20 {
		if resources.ConfigHash(many) != first {
			t.Fatal("the hash depends on the order of the map")
		}
	}
}

// TestConfigHashIsStable: another value in a later release would restart the
// nodes of every cache with a config.
func TestConfigHashIsStable(t *testing.T) {
	if got, want := resources.ConfigHash(data("cache.conf", "a 1\n")), "a12b5d5e2cf657b8"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
