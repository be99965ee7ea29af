package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/kube"
)

// copies serves the lists of a fleet of any size, all of whose caches are
// copies of one that the API server and its controllers made: a fleet of ten
// thousand costs nothing to set up, and what a pass makes of it depends on no
// decision of a server. Any request but a list is an error.
type copies struct {
	size  int
	lists map[string]copiedList // by the resource, and for Services the component
	// padding is put into an annotation of every cache.
	padding string

	mu    sync.Mutex
	pages map[string]int
	wrong []string
}

// copiedList is one object as the API server would send it, and a list's head.
type copiedList struct {
	apiVersion, kind string
	item             []byte // protobuf; JSON for caches
}

// What tells the copies apart has the length of the original, so that it can
// be put in its place in protobuf.
const originalName = "one-of-many-00000"

func (c *copies) name(i int) string { return fmt.Sprintf("one-of-many-%05d", i) }

// newCopies settles one cache on the API server and copies it.
func newCopies(w *world.World, size int) *copies {
	w.Helper()
	w.Named(originalName).Cache()
	w.Settle()
	cache := w.Named(originalName).Stored()
	raw, err := json.Marshal(cache)
	if err != nil {
		w.Fatal(err)
	}
	child := func(name string, o interface {
		client.Object
		Marshal() ([]byte, error)
	}) []byte {
		raw, err := world.Get(w, name, o).Marshal()
		if err != nil {
			w.Fatal(err)
		}
		return raw
	}
	return &copies{size: size, pages: map[string]int{}, lists: map[string]copiedList{
		"clusteredcaches":      {v1.GroupVersion.String(), v1.Kind + "List", raw},
		"statefulsets":         {"apps/v1", "StatefulSetList", child(originalName, &appsv1.StatefulSet{})},
		"services/client":      {"v1", "ServiceList", child(originalName, &corev1.Service{})},
		"services/nodes":       {"v1", "ServiceList", child("nodes-"+originalName, &corev1.Service{})},
		"poddisruptionbudgets": {"policy/v1", "PodDisruptionBudgetList", child(originalName, &policyv1.PodDisruptionBudget{})},
	}}
}

// change makes all copies of a kind differ from the one that they were made of.
func (c *copies) change(resource, from, to string) {
	list := c.lists[resource]
	list.item = bytes.ReplaceAll(list.item, []byte(from), []byte(to))
	c.lists[resource] = list
}

// client returns the program's own client of the fleet.
func (c *copies) client(t *testing.T) client.Client {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	cl, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// ServeHTTP answers with one page of a list.
func (c *copies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	_, component, _ := strings.Cut(r.URL.Query().Get("labelSelector"), v1.ComponentLabel+"=")
	if component, _, _ = strings.Cut(component, ","); component != "" {
		resource += "/" + component
	}
	list, known := c.lists[resource]
	c.mu.Lock()
	defer c.mu.Unlock()
	if !known || r.Method != http.MethodGet {
		c.wrong = append(c.wrong, r.Method+" "+r.URL.String())
		w.WriteHeader(http.StatusTeapot)
		return
	}
	c.pages[resource]++
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to := min(from+limit, c.size)
	meta := metav1.ListMeta{ResourceVersion: "1"}
	if to < c.size {
		meta.Continue = strconv.Itoa(to)
	}
	if list.kind == v1.Kind+"List" {
		c.json(w, list, meta, from, to)
		return
	}
	c.protobuf(w, list, meta, from, to)
}

func (c *copies) item(original copiedList, i int) []byte {
	return bytes.ReplaceAll(original.item, []byte(originalName), []byte(c.name(i)))
}

func (c *copies) json(w http.ResponseWriter, list copiedList, meta metav1.ListMeta, from, to int) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"continue":%q,"resourceVersion":"1"},"items":[`, list.apiVersion, list.kind, meta.Continue)
	for i := from; i < to; i++ {
		if i > from {
			_, _ = w.Write([]byte{','})
		}
		item := c.item(list, i)
		if c.padding != "" {
			item = bytes.Replace(item, []byte(`"metadata":{`), []byte(`"metadata":{"annotations":{"padding":"`+c.padding+`"},`), 1)
		}
		_, _ = w.Write(item)
	}
	_, _ = w.Write([]byte("]}"))
}

// protobuf writes a list: its fields are metadata (1) and the items (2).
func (c *copies) protobuf(w http.ResponseWriter, list copiedList, meta metav1.ListMeta, from, to int) {
	var raw []byte
	field := func(tag byte, value []byte) {
		raw = append(raw, tag<<3|2)
		for n := uint64(len(value)); ; n >>= 7 {
			if n < 0x80 {
				raw = append(raw, byte(n))
				break
			}
			raw = append(raw, byte(n)|0x80)
		}
		raw = append(raw, value...)
	}
	head, _ := meta.Marshal()
	field(1, head)
	for i := from; i < to; i++ {
		field(2, c.item(list, i))
	}
	body, _ := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: list.apiVersion, Kind: list.kind}, Raw: raw}).Marshal()
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_, _ = w.Write(append([]byte("k8s\x00"), body...))
}
