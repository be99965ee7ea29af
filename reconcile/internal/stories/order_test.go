package stories_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
)

// The order of a keyed list has a meaning that no ownership holds: variables
// refer to those before them. It is set, and set back.
func TestOrderOfListsIsKept(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	overlay := func(first, second string) *v1.ClusteredCache {
		return &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1",
			PodTemplate: raw(`{"spec":{"containers":[{"name":"cache","env":[{"name":"` + first + `","value":"1"},{"name":"` + second + `","value":"2"}]}]}}`)}}
	}
	want := func(what, first string) {
		t.Helper()
		passOn(t, env, ns)
		sts := &appsv1.StatefulSet{}
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "cache"}, sts); err != nil {
			t.Fatal(err)
		}
		if got := sts.Spec.Template.Spec.Containers[0].Env[0].Name; got != first {
			t.Errorf("%s: %s comes first", what, got)
		}
		if f := passOn(t, env, ns); len(f.Caches) > 0 && len(f.Caches[0].Outcomes) > 0 {
			t.Errorf("%s: a second pass still does something: %+v", what, f.Caches[0].Outcomes[0].Step.Changes)
		}
	}
	c := overlay("A", "B")
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want("created", "A")
	swapped := c.DeepCopy()
	swapped.Spec.PodTemplate = overlay("B", "A").Spec.PodTemplate
	if err := env.Client.Patch(t.Context(), swapped, client.MergeFrom(c)); err != nil {
		t.Fatal(err)
	}
	want("swapped in the spec", "B")
	sts := &appsv1.StatefulSet{ObjectMeta: meta(ns, "cache")}
	byHand := `[{"op":"replace","path":"/spec/template/spec/containers/0/env","value":[{"name":"A","value":"2"},{"name":"B","value":"1"}]}]`
	if err := env.Client.Patch(t.Context(), sts, client.RawPatch("application/json-patch+json", []byte(byHand)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	want("swapped by hand", "B")
}

// A field of ours that is false and is removed has the server's default in its
// place, and the typed object does not show it. It is set back, and announced
// as the change of the template that it is.
func TestARemovedFalseIsAnnounced(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	if err := env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	sts := &appsv1.StatefulSet{ObjectMeta: meta(ns, "cache")}
	remove := `[{"op":"remove","path":"/spec/template/spec/automountServiceAccountToken"}]`
	if err := env.Client.Patch(t.Context(), sts, client.RawPatch("application/json-patch+json", []byte(remove)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	got := changesOf(diff(t, env, ns), "cache", "StatefulSet")
	if len(got) != 1 || got[0].Path != "spec.template.spec.automountServiceAccountToken" || got[0].From != "" || got[0].To != "false" {
		t.Errorf("%+v", got)
	}
	if got := changesOf(passOn(t, env, ns), "cache", "StatefulSet"); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}
