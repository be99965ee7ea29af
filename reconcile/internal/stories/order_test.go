package stories_test

import (
	"fmt"

	"example.com/clusteredcache/reconcile/internal/world"

	"testing"
)

// The order of a keyed list has a meaning that no ownership holds: variables
// refer to those before them. It is set, and set back.
func TestOrderOfListsIsKept(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t)
	overlay := func(first, second string) string {
		return fmt.Sprintf(`spec: {podTemplate: {spec: {containers: [{name: cache, env: [{name: %s, value: "1"}, {name: %s, value: "2"}]}]}}}`, first, second)
	}
	want := func(what, first string) {
		t.Helper()
		w.Pass()
		if got := w.StatefulSet().Spec.Template.Spec.Containers[0].Env[0].Name; got != first {
			t.Errorf("%s: %s comes first", what, got)
		}
		if f := w.Pass(); len(f.Caches) > 0 && len(f.Caches[0].Outcomes) > 0 {
			t.Errorf("%s: a second pass still does something: %+v", what, f.Caches[0].Outcomes[0].Step.Changes)
		}
	}
	w.Cache(overlay("A", "B"))
	want("created", "A")
	w.Edit(overlay("B", "A"))
	want("swapped in the spec", "B")
	w.PatchJSON(w.StatefulSet(), `[{"op":"replace","path":"/spec/template/spec/containers/0/env","value":[{"name":"A","value":"2"},{"name":"B","value":"1"}]}]`, "somebody")
	want("swapped by hand", "B")
}

// A field of ours that is false and is removed has the server's default in its
// place, and the typed object does not show it. It is set back, and announced
// as the change of the template that it is.
func TestARemovedFalseIsAnnounced(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t)
	w.Cache()
	w.Pass()
	w.PatchJSON(w.StatefulSet(), `[{"op":"remove","path":"/spec/template/spec/automountServiceAccountToken"}]`, "somebody")
	got := w.Diff().Changes("StatefulSet")
	if len(got) != 1 || got[0].Path != "spec.template.spec.automountServiceAccountToken" || got[0].From != "" || got[0].To != "false" {
		t.Errorf("%+v", got)
	}
	if got := w.Pass().Changes("StatefulSet"); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}
