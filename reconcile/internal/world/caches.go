package world

import (
	"encoding/json"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
)

// ordinary is what a cache is when a test does not say otherwise.
const ordinary = `spec: {version: "1.6.38", size: 3}`

// Crashing is a cache whose nodes do not stay up, as the control plane has it.
const Crashing = `spec: {version: crashing}`

// Cache creates the cache: three nodes of version 1.6.38, but for what is said in
// YAML. Of several documents the later ones add to those before.
func (w *World) Cache(said ...string) *v1.ClusteredCache {
	w.Helper()
	c := w.Draft(said...)
	w.Create(c)
	return c
}

// Draft is a cache like that of Cache, which is not created yet.
func (w *World) Draft(said ...string) *v1.ClusteredCache {
	w.Helper()
	all := map[string]any{}
	for _, document := range append([]string{ordinary}, said...) {
		merge(all, w.parse(document))
	}
	raw, err := yaml.Marshal(all)
	if err != nil {
		w.Fatal(err)
	}
	c := &v1.ClusteredCache{}
	if err := yaml.UnmarshalStrict(raw, c); err != nil {
		w.Fatalf("%v in %q", err, said)
	}
	c.Namespace, c.Name = w.NS, w.Name
	return c
}

// parse refuses what YAML has twice.
func (w *World) parse(document string) map[string]any {
	w.Helper()
	fields := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(document), &fields); err != nil {
		w.Fatalf("%v in %s", err, document)
	}
	return fields
}

// merge puts what more says into all; null removes.
func merge(all, more map[string]any) {
	for key, value := range more {
		inner, isMap := value.(map[string]any)
		outer, wasMap := all[key].(map[string]any)
		switch {
		case value == nil:
			delete(all, key)
		case isMap && wasMap:
			merge(outer, inner)
		default:
			all[key] = value
		}
	}
}

// Edit changes the cache by a merge patch in YAML, as its user.
func (w *World) Edit(patch string) {
	w.Helper()
	raw, err := json.Marshal(w.parse(patch))
	if err != nil {
		w.Fatal(err)
	}
	w.Patch(&v1.ClusteredCache{ObjectMeta: w.Meta(w.Name)}, string(raw), client.FieldOwner("user"), strictly)
}

// strictly refuses fields that the server does not know.
var strictly = &client.PatchOptions{Raw: &metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}}

// Delete deletes an object.
func (w *World) Delete(o client.Object, opts ...client.DeleteOption) {
	w.Helper()
	if err := w.Env.Client.Delete(w.Context(), o, opts...); err != nil {
		w.Fatal(err)
	}
}

// Remove deletes the cache and does not wait for its end.
func (w *World) Remove(opts ...client.DeleteOption) *v1.ClusteredCache {
	w.Helper()
	c := w.Stored()
	w.Delete(c, opts...)
	return c
}

// Stored is the cache as it is stored.
func (w *World) Stored() *v1.ClusteredCache {
	w.Helper()
	return Get(w, w.Name, &v1.ClusteredCache{})
}

// Unstructured is the cache as it is stored, with what no type shows.
func (w *World) Unstructured() *unstructured.Unstructured {
	w.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind))
	return Get(w, w.Name, u)
}

// Condition is one of the cache's conditions, empty when it is not there.
func (w *World) Condition(kind string) metav1.Condition {
	w.Helper()
	return ConditionOf(w.Stored(), kind)
}

// ConditionOf is a condition of c, empty when it is not there.
func ConditionOf(c *v1.ClusteredCache, kind string) metav1.Condition {
	if p := apimeta.FindStatusCondition(c.Status.Conditions, kind); p != nil {
		return *p
	}
	return metav1.Condition{}
}

// Available is whether c says that it is available.
func Available(c *v1.ClusteredCache) metav1.ConditionStatus {
	return ConditionOf(c, v1.ConditionAvailable).Status
}

// Message is what the status says.
func (w *World) Message() string {
	w.Helper()
	return w.Condition(v1.ConditionAvailable).Message
}

// Says wants parts in what the status says.
func (w *World) Says(parts ...string) *World {
	w.Helper()
	for _, part := range parts {
		if m := w.Message(); !strings.Contains(m, part) {
			w.Errorf("message %q, want %q in it", m, part)
		}
	}
	return w
}

// Until makes passes until the status has reason.
func (w *World) Until(reason string) *World {
	w.Helper()
	w.Passing(w.String()+" is "+reason, func() bool { return w.Condition(v1.ConditionAvailable).Reason == reason })
	return w
}

// Passing makes passes until what is so.
func (w *World) Passing(what string, so func() bool) {
	w.Helper()
	w.Eventually(what, func() bool {
		w.Pass()
		if so() {
			return true
		}
		time.Sleep(50 * time.Millisecond)
		return false
	})
}

// UntilSays makes passes until the status says part.
func (w *World) UntilSays(part string) {
	w.Helper()
	w.Passing("the status says "+part, func() bool { return strings.Contains(w.Message(), part) })
}
