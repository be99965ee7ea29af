package scenario

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resources are the kinds that can be asked for, by the last part of their path.
var resources = map[string]schema.GroupVersionKind{
	"clusteredcaches":        {Group: "cache.example.com", Version: "v1", Kind: "ClusteredCache"},
	"configmaps":             {Version: "v1", Kind: "ConfigMap"},
	"events":                 {Group: "events.k8s.io", Version: "v1", Kind: "Event"},
	"jobs":                   {Group: "batch", Version: "v1", Kind: "Job"},
	"namespaces":             {Version: "v1", Kind: "Namespace"},
	"persistentvolumeclaims": {Version: "v1", Kind: "PersistentVolumeClaim"},
	"poddisruptionbudgets":   {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	"pods":                   {Version: "v1", Kind: "Pod"},
	"services":               {Version: "v1", Kind: "Service"},
	"statefulsets":           {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	"storageclasses":         {Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
}

// server is an API server in memory that has a few objects and can only read. It
// takes the place of the network below a client.
type server []client.Object

// RoundTrip answers a get or a list.
func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	namespace, resource, name := parse(r.URL.Path)
	gvk, known := resources[resource]
	if r.Method != http.MethodGet || !known {
		return answer(r, http.StatusMethodNotAllowed, failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, r.Method+" "+r.URL.Path))
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	items := []client.Object{}
	for _, o := range s {
		if o.GetObjectKind().GroupVersionKind() != gvk || o.GetNamespace() != namespace {
			continue
		}
		if name != "" && o.GetName() == name {
			return answer(r, http.StatusOK, o)
		}
		if selector.Matches(labels.Set(o.GetLabels())) {
			items = append(items, o)
		}
	}
	if name != "" {
		return answer(r, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound, resource+" "+name))
	}
	slices.SortFunc(items, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return answer(r, http.StatusOK, map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind + "List", "metadata": map[string]any{}, "items": items,
	})
}

// parse takes /api/v1/... or /apis/GROUP/VERSION/... apart.
func parse(path string) (namespace, resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts = parts[2:]; path[:5] == "/apis" {
		parts = parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if resource = parts[0]; len(parts) > 1 {
		name = parts[1]
	}
	return namespace, resource, name
}

func failure(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

func answer(r *http.Request, code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}
