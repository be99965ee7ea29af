package stories_test

import (
	"sync/atomic"

	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "example.com/clusteredcache/api/v1"
)

// No missed drift: each single field that we own, in every child, is changed
// and removed by somebody else, and its ownership is taken and cleared. One
// pass finds it and sets it back. (Owner references and immutable fields have
// rules of their own.)
func TestEveryOwnedFieldIsRepaired(t *testing.T) {
	t.Parallel()
	var tried atomic.Int64
	t.Run("children", func(t *testing.T) {
		for _, child := range []struct{ apiVersion, kind, name string }{
			{"apps/v1", "StatefulSet", "cache"},
			{"v1", "Service", "cache"},
			{"v1", "Service", "nodes-cache"},
			{"policy/v1", "PodDisruptionBudget", "cache"},
		} {
			t.Run(child.kind+" "+child.name, func(t *testing.T) {
				t.Parallel()
				w := world.Frozen(t)
				w.Cache(everyField)
				w.Pass()
				tried.Add(int64(spoilAndRepair(w, w.Object(child.apiVersion, child.kind, child.name))))
			})
		}
	})
	if n := tried.Load(); n < 150 {
		t.Errorf("only %d ways to spoil a field were tried", n)
	}
	t.Logf("%d ways to spoil a field", tried.Load())
}

// everyField is a cache that has much of what there is.
const everyField = `
spec:
  args: [-v]
  resources: {limits: {memory: 1Gi}}
  podTemplate:
    metadata: {annotations: {a: b}}
    spec:
      nodeSelector: {disk: ssd}
      tolerations: [{key: a, operator: Exists}]
      priorityClassName: ""
      containers: [{name: cache, env: [{name: A, value: "1"}]}, {name: side, image: x}]
`

// spoilAndRepair spoils each field of o that is ours, in each way, and returns how
// often it could.
func spoilAndRepair(w *world.World, o *unstructured.Unstructured) (tried int) {
	for _, path := range ownedLeaves(w, o) {
		for how, spoil := range spoilers {
			if !spoil(w, o.DeepCopy(), path) {
				continue
			}
			tried++
			wantRepaired(w, o, path.String()+" "+how)
			if isKey(path) {
				anew(w, o)
			}
		}
	}
	return tried
}

// isKey tells a merge key. An item that got another key is somebody else's new
// item; ours comes back beside it.
func isKey(p fieldpath.Path) bool {
	if len(p) < 2 || p[len(p)-2].Key == nil {
		return false
	}
	for _, k := range *p[len(p)-2].Key {
		if k.Name == *p[len(p)-1].FieldName {
			return true
		}
	}
	return false
}

// anew makes o again, without what others left in it.
func anew(w *world.World, o *unstructured.Unstructured) {
	w.Helper()
	w.Delete(o.DeepCopy())
	w.Pass()
	w.Read(o)
}

// ownedLeaves are the paths of the single fields in our entry.
func ownedLeaves(w *world.World, o *unstructured.Unstructured) []fieldpath.Path {
	w.Helper()
	w.Read(o)
	set := &fieldpath.Set{}
	for _, e := range o.GetManagedFields() {
		if e.Manager == v1.FieldManager && e.Operation == "Apply" {
			if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
				w.Fatal(err)
			}
		}
	}
	var paths []fieldpath.Path
	set.Leaves().Iterate(func(p fieldpath.Path) {
		if !strings.Contains(p.String(), "ownerReferences") {
			paths = append(paths, p.Copy())
		}
	})
	return paths
}

// spoilers do something to one field of o; false: the API server refuses it,
// or there is nothing to do it to.
var spoilers = map[string]func(*world.World, *unstructured.Unstructured, fieldpath.Path) bool{
	"changed by update": func(w *world.World, o *unstructured.Unstructured, p fieldpath.Path) bool {
		w.Read(o)
		return edit(o.Object, p, other) && took(w, w.Env.Client.Update(w.Context(), o, client.FieldOwner("somebody")))
	},
	"removed by update": func(w *world.World, o *unstructured.Unstructured, p fieldpath.Path) bool {
		w.Read(o)
		return edit(o.Object, p, func(any) any { return nil }) && took(w, w.Env.Client.Update(w.Context(), o, client.FieldOwner("somebody")))
	},
	"changed by a forced apply": func(w *world.World, o *unstructured.Unstructured, p fieldpath.Path) bool {
		w.Read(o)
		if !edit(o.Object, p, other) {
			return false
		}
		o.SetManagedFields(nil)
		delete(o.Object, "status")
		err := w.Env.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("somebody-else"), client.ForceOwnership)
		return took(w, err)
	},
}

func took(w *world.World, err error) bool {
	w.Helper()
	if apierrors.IsConflict(err) || err != nil && !errors.As(err, new(apierrors.APIStatus)) {
		w.Fatal(err)
	}
	return err == nil
}

// edit replaces the value at p by what f makes of it (nil: removes it), and
// tells whether that is a change.
func edit(object map[string]any, p fieldpath.Path, f func(any) any) bool {
	var v any = object
	for _, e := range p[:len(p)-1] {
		if v = lookUp(v, e); v == nil {
			return false
		}
	}
	m, ok := v.(map[string]any)
	name := p[len(p)-1].FieldName
	if !ok || name == nil || m[*name] == nil {
		return false
	}
	changed := f(m[*name])
	if changed == nil {
		delete(m, *name)
	} else {
		m[*name] = changed
	}
	return true
}

func lookUp(v any, e fieldpath.PathElement) any {
	if e.FieldName != nil {
		m, _ := v.(map[string]any)
		return m[*e.FieldName]
	}
	list, _ := v.([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		same := e.Key != nil
		for i := 0; same && i < len(*e.Key); i++ {
			k := (*e.Key)[i]
			a, _ := json.Marshal(m[k.Name])
			b, _ := json.Marshal(k.Value.Unstructured())
			same = bytes.Equal(a, b)
		}
		if same {
			return item
		}
	}
	return nil
}

// other is another value of the same type.
func other(v any) any {
	switch v := v.(type) {
	case string:
		return v + "x"
	case bool:
		return !v
	case int64:
		return v + 1
	case []any:
		return append(v[:len(v):len(v)], v...)
	case map[string]any:
		m := map[string]any{"another": "entry"}
		for key, value := range v {
			m[key] = value
		}
		return m
	}
	return v
}

// wantRepaired makes a pass, after which there must be nothing left to do, and
// the object's fields must be as they were.
func wantRepaired(w *world.World, o *unstructured.Unstructured, what string) {
	w.Helper()
	w.Pass()
	after := o.DeepCopy()
	w.Read(after)
	if d := cmp.Diff(owned(w, o), owned(w, after)); d != "" {
		w.Errorf("%s %s, %s: not repaired:\n%s", o.GetKind(), o.GetName(), what, d)
	}
	for _, c := range w.Pass().Caches {
		if len(c.Outcomes) > 0 {
			w.Errorf("%s %s, %s: a second pass still does something: %+v", o.GetKind(), o.GetName(), what, c.Outcomes[0].Step.Changes)
		}
	}
}

// owned are the values at the paths that we owned when o was first read.
func owned(w *world.World, o *unstructured.Unstructured) map[string]string {
	w.Helper()
	values := map[string]string{}
	set := &fieldpath.Set{}
	for _, e := range o.GetManagedFields() {
		if e.Manager == v1.FieldManager && e.Operation == "Apply" {
			if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
				w.Fatal(err)
			}
		}
	}
	set.Leaves().Iterate(func(p fieldpath.Path) {
		var v any = o.Object
		for _, e := range p {
			v = lookUp(v, e)
		}
		text, _ := json.Marshal(v)
		values[p.String()] = string(text)
	})
	return values
}

// Ownership that is cleared altogether, and objects that client-side apply made
// first, are taken over once, with what only they had gone.
func TestClearedOwnership(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t)
	w.Cache()
	w.Pass()
	for _, o := range []*unstructured.Unstructured{
		w.Object("apps/v1", "StatefulSet", "cache"), w.Object("v1", "Service", "cache"), w.Object("policy/v1", "PodDisruptionBudget", "cache"),
	} {
		w.Patch(o, `{"metadata":{"managedFields":[{}]}}`)
		w.Read(o)
		if len(o.GetManagedFields()) != 0 {
			t.Fatalf("%s: managedFields are not cleared", o.GetKind())
		}
		w.Pass()
		w.Read(o)
		if len(owned(w, o)) == 0 {
			t.Errorf("%s: nothing is ours after a pass", o.GetKind())
		}
		for _, c := range w.Pass().Caches {
			if len(c.Outcomes) > 0 {
				t.Errorf("%s: a second pass still does something: %+v", o.GetKind(), c.Outcomes[0].Step.Changes)
			}
		}
	}
}
