package stories_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
)

// No missed drift: each single field that we own, in every child, is changed
// and removed by somebody else, and its ownership is taken and cleared. One
// pass finds it and sets it back. (Owner references and immutable fields have
// rules of their own.)
func TestEveryOwnedFieldIsRepaired(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	cache := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{
		Version: "1.6.38", Size: 3, Args: []string{"-v"}, PodTemplate: raw(`{"metadata":{"annotations":{"a":"b"}},"spec":{"nodeSelector":{"disk":"ssd"},
			"tolerations":[{"key":"a","operator":"Exists"}],"priorityClassName":"","containers":[{"name":"cache","env":[{"name":"A","value":"1"}]},{"name":"side","image":"x"}]}}`),
	}}
	cache.Spec.Resources.Limits = map[v1Resource]quantityOf{"memory": quantity("1Gi")}
	if err := env.Client.Create(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	tried := 0
	for _, child := range []struct {
		gvk  schema.GroupVersionKind
		name string
	}{
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "cache"},
		{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "cache"},
		{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "nodes-cache"},
		{schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, "cache"},
	} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(child.gvk)
		o.SetNamespace(ns)
		o.SetName(child.name)
		for _, path := range ownedLeaves(t, env, o) {
			for how, spoil := range spoilers {
				if spoilt := spoil(t, env, o.DeepCopy(), path); spoilt {
					tried++
					wantRepaired(t, env, o, path.String()+" "+how)
					if isKey(path) {
						anew(t, env, o)
					}
				}
			}
		}
	}
	if tried < 150 {
		t.Errorf("only %d ways to spoil a field were tried", tried)
	}
	t.Logf("%d ways to spoil a field", tried)
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
func anew(t *testing.T, env *testenv.Env, o *unstructured.Unstructured) {
	t.Helper()
	if err := env.Client.Delete(t.Context(), o.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, o.GetNamespace())
	read(t, env, o)
}

// ownedLeaves are the paths of the single fields in our entry.
func ownedLeaves(t *testing.T, env *testenv.Env, o *unstructured.Unstructured) []fieldpath.Path {
	t.Helper()
	read(t, env, o)
	set := &fieldpath.Set{}
	for _, e := range o.GetManagedFields() {
		if e.Manager == v1.FieldManager && e.Operation == "Apply" {
			if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
				t.Fatal(err)
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

func read(t *testing.T, env *testenv.Env, o *unstructured.Unstructured) {
	t.Helper()
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
}

// spoilers do something to one field of o; false: the API server refuses it,
// or there is nothing to do it to.
var spoilers = map[string]func(*testing.T, *testenv.Env, *unstructured.Unstructured, fieldpath.Path) bool{
	"changed by update": func(t *testing.T, env *testenv.Env, o *unstructured.Unstructured, p fieldpath.Path) bool {
		read(t, env, o)
		return edit(o.Object, p, other) && took(t, env.Client.Update(t.Context(), o, client.FieldOwner("somebody")))
	},
	"removed by update": func(t *testing.T, env *testenv.Env, o *unstructured.Unstructured, p fieldpath.Path) bool {
		read(t, env, o)
		return edit(o.Object, p, func(any) any { return nil }) && took(t, env.Client.Update(t.Context(), o, client.FieldOwner("somebody")))
	},
	"changed by a forced apply": func(t *testing.T, env *testenv.Env, o *unstructured.Unstructured, p fieldpath.Path) bool {
		read(t, env, o)
		if !edit(o.Object, p, other) {
			return false
		}
		o.SetManagedFields(nil)
		delete(o.Object, "status")
		err := env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("somebody-else"), client.ForceOwnership)
		return took(t, err)
	},
}

func took(t *testing.T, err error) bool {
	t.Helper()
	if apierrors.IsConflict(err) || err != nil && !errors.As(err, new(apierrors.APIStatus)) {
		t.Fatal(err)
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
func wantRepaired(t *testing.T, env *testenv.Env, o *unstructured.Unstructured, what string) {
	t.Helper()
	passOn(t, env, o.GetNamespace())
	after := o.DeepCopy()
	read(t, env, after)
	if d := cmpDiff(owned(t, o), owned(t, after)); d != "" {
		t.Errorf("%s %s, %s: not repaired:\n%s", o.GetKind(), o.GetName(), what, d)
	}
	for _, c := range passOn(t, env, o.GetNamespace()).Caches {
		if len(c.Outcomes) > 0 {
			t.Errorf("%s %s, %s: a second pass still does something: %+v", o.GetKind(), o.GetName(), what, c.Outcomes[0].Step.Changes)
		}
	}
}

// owned are the values at the paths that we owned when o was first read.
func owned(t *testing.T, o *unstructured.Unstructured) map[string]string {
	t.Helper()
	values := map[string]string{}
	set := &fieldpath.Set{}
	for _, e := range o.GetManagedFields() {
		if e.Manager == v1.FieldManager && e.Operation == "Apply" {
			if err := set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
				t.Fatal(err)
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
	env := frozen(t)
	ns := env.Namespace(t)
	if err := env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1", Size: 3}}); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Version: "v1", Kind: "Service"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		o.SetNamespace(ns)
		o.SetName("cache")
		if err := env.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"managedFields":[{}]}}`))); err != nil {
			t.Fatal(err)
		}
		read(t, env, o)
		if len(o.GetManagedFields()) != 0 {
			t.Fatalf("%s: managedFields are not cleared", gvk.Kind)
		}
		passOn(t, env, ns)
		read(t, env, o)
		if len(owned(t, o)) == 0 {
			t.Errorf("%s: nothing is ours after a pass", gvk.Kind)
		}
		for _, c := range passOn(t, env, ns).Caches {
			if len(c.Outcomes) > 0 {
				t.Errorf("%s: a second pass still does something: %+v", gvk.Kind, c.Outcomes[0].Step.Changes)
			}
		}
	}
}
