package fields

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
)

// managed returns a StatefulSet with these entries of managedFields, in JSON.
func managed(t *testing.T, entries ...string) *appsv1.StatefulSet {
	t.Helper()
	s := &appsv1.StatefulSet{}
	if err := json.Unmarshal([]byte("["+strings.Join(entries, ",")+"]"), &s.ManagedFields); err != nil {
		t.Fatal(err)
	}
	return s
}

// entry returns an entry of managedFields, as an API server writes it.
func entry(manager, operation, fieldSet string) string {
	return fmt.Sprintf(`{"manager":%q,"operation":%q,"apiVersion":"apps/v1","time":"2026-11-30T11:00:00Z","fieldsType":"FieldsV1","fieldsV1":%s}`,
		manager, operation, fieldSet)
}

const (
	replicas = `{"f:spec":{"f:replicas":{}}}`
	strategy = `{"f:spec":{"f:updateStrategy":{"f:type":{}}}}`
	// broken is JSON, but not a field set.
	broken = `{"f:spec":"replicas"}`
	// inStatus is an entry of ours on another endpoint.
	inStatus = `{"manager":"clusteredcache","operation":"Apply","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:replicas":{}}},"subresource":"status"}`
	// empty is an entry of ours without fields.
	empty = `{"manager":"clusteredcache","operation":"Apply","apiVersion":"apps/v1"}`
)

// later is the same entry, written at another time.
func later(entry string) string { return strings.Replace(entry, "T11:00:00Z", "T12:00:00Z", 1) }

// TestSameOwners checks whether two objects count as owned in the same way.
func TestSameOwners(t *testing.T) {
	ours, hpa := entry("clusteredcache", "Apply", replicas), entry("hpa", "Update", replicas)
	type list = []string
	tests := []struct {
		name, wrong string
		a, b        list
		want        bool
	}{
		{"the same", "every apply would be reported as a change", list{ours, hpa}, list{ours, hpa}, true},
		{"no entries", "every apply would be reported as a change", nil, nil, true},
		{"another time", "an apply that changed nothing would be reported", list{ours}, list{later(ours)}, true},
		{"another order of fields", "two releases of the API server would disagree",
			list{entry("x", "Apply", `{"f:a":{},"f:b":{}}`)}, list{entry("x", "Apply", `{"f:b":{},"f:a":{}}`)}, true},
		{"one more entry", "a manager that appeared would be missed", list{ours}, list{ours, hpa}, false},
		{"another field", "an ownership that moved would be missed",
			list{ours}, list{entry("clusteredcache", "Apply", strategy)}, false},
		{"another manager", "an ownership that moved would be missed", list{ours}, list{entry("argocd", "Apply", replicas)}, false},
		{"another operation", "an update would pass for an apply", list{ours}, list{entry("clusteredcache", "Update", replicas)}, false},
		{"another subresource", "the status would pass for the spec",
			list{entry("clusteredcache", "Apply", `{"f:status":{"f:replicas":{}}}`)}, list{inStatus}, false},
		{"not readable", "two sets that nobody can read would be called equal",
			list{entry("x", "Apply", broken)}, list{entry("x", "Apply", broken)}, false},
		{"without fields", "an entry without fields would be a panic", list{empty}, list{empty}, false},
	}
	for _, test := range tests {
		a, b := managed(t, test.a...), managed(t, test.b...)
		if SameOwners(a, b) != test.want || SameOwners(b, a) != test.want {
			t.Errorf("%s: want %v: %s", test.name, test.want, test.wrong)
		}
	}
}

// TestSameEntry checks whether our own entry is the same, whatever others did.
func TestSameEntry(t *testing.T) {
	ours, hpa := entry("clusteredcache", "Apply", replicas), entry("hpa", "Update", strategy)
	type list = []string
	tests := []struct {
		name, wrong string
		a, b        list
		want        bool
	}{
		{"the same", "no write would survive a controller that writes status", list{ours}, list{ours}, true},
		{"another time", "no write would survive a controller that writes status", list{ours}, list{later(ours)}, true},
		{"another manager came", "a controller could keep us from our write", list{ours}, list{hpa, ours}, true},
		{"we never wrote", "the first apply could not survive a conflict", list{hpa}, nil, true},
		{"ours came", "the write of another pass would be overwritten", nil, list{ours}, false},
		{"ours changed", "the write of another pass would be overwritten",
			list{ours}, list{entry("clusteredcache", "Apply", strategy)}, false},
		{"our entry for the status changed", "our own status would count as a change of the spec",
			list{ours}, list{ours, inStatus}, true},
		{"our update", "only what an apply owns can be lost", list{ours}, list{ours, entry("clusteredcache", "Update", strategy)}, true},
		{"our entry has no fields", "an entry without fields would be a panic", list{empty}, nil, true},
	}
	for _, test := range tests {
		a, b := managed(t, test.a...), managed(t, test.b...)
		if SameEntry(a, b) != test.want || SameEntry(b, a) != test.want {
			t.Errorf("%s: want %v: %s", test.name, test.want, test.wrong)
		}
	}
}

// variable is the field set of an environment variable.
const variable = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{"f:env":{"k:{\"name\":\"PASSWORD\"}":{".":{},"f:name":{},"f:value":{}}}}}}}}}`

// TestOursAlone checks the paths that a report may show. A path too many shows a
// secret of somebody else.
func TestOursAlone(t *testing.T) {
	ours := entry("clusteredcache", "Apply", variable)
	all := map[string]bool{
		"spec.template.spec.containers[cache].env[PASSWORD]":       true,
		"spec.template.spec.containers[cache].env[PASSWORD].name":  true,
		"spec.template.spec.containers[cache].env[PASSWORD].value": true,
	}
	type list = []string
	tests := []struct {
		name, wrong string
		entries     list
		want        map[string]bool
	}{
		{"ours", "our own values would be hidden", list{ours}, all},
		{"on another endpoint too", "our own values would be hidden", list{inStatus, ours},
			map[string]bool{"status.replicas": true, "spec.template.spec.containers[cache].env[PASSWORD]": true,
				"spec.template.spec.containers[cache].env[PASSWORD].name": true, "spec.template.spec.containers[cache].env[PASSWORD].value": true}},
		{"shared", "a value that somebody else set would be shown", list{ours, entry("vault", "Update", variable)}, map[string]bool{}},
		{"theirs", "a value that somebody else set would be shown", list{entry("vault", "Apply", variable)}, map[string]bool{}},
		{"an update under our name", "a value that kubectl set under our name would be shown",
			list{ours, entry("clusteredcache", "Update", variable)}, map[string]bool{}},
		{"an entry that nobody can read", "it may own the value", list{ours, entry("vault", "Update", broken)}, nil},
		{"an entry without fields", "one useless entry would hide everything", list{ours, empty}, all},
		{"no entries", "a value without a known owner would be shown", nil, map[string]bool{}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, OursAlone(managed(t, test.entries...))); diff != "" {
			t.Errorf("%s: %s:\n%s", test.name, test.wrong, diff)
		}
	}
}

// TestAppliedAlone checks which labels an apply of a manager would remove when its
// manifest omits them.
func TestAppliedAlone(t *testing.T) {
	team := `{"f:metadata":{"f:labels":{"f:team":{},"f:a.b/c":{}}}}`
	applied := entry("kubectl", "Apply", team)
	label := []string{"metadata", "labels", "team"}
	type list = []string
	tests := []struct {
		name, wrong string
		entries     list
		names       list
		want        bool
	}{
		{"applied", "a label that goes would be shown as staying", list{applied}, label, true},
		{"a name with a dot and a slash", "the names of labels have both", list{applied}, list{"metadata", "labels", "a.b/c"}, true},
		{"applied on two endpoints", "a second entry would replace the first",
			list{applied, strings.Replace(entry("kubectl", "Apply", `{"f:status":{}}`), "}}}", `}},"subresource":"status"}`, 1)}, label, true},
		{"updated", "a label that stays would be shown as going", list{entry("kubectl", "Update", team)}, label, false},
		{"applied and updated", "the update keeps the label", list{applied, entry("kubectl", "Update", team)}, label, false},
		{"applied by two", "the other manager keeps the label", list{applied, entry("argocd", "Apply", team)}, label, false},
		{"applied by another", "kubectl does not remove what it never set", list{entry("argocd", "Apply", team)}, label, false},
		{"another label", "a label that stays would be shown as going", list{applied}, list{"metadata", "labels", "other"}, false},
		{"an annotation", "labels and annotations would be mixed up", list{applied}, list{"metadata", "annotations", "team"}, false},
		{"a parent", "labels as a whole belong to nobody", list{applied}, list{"metadata", "labels"}, false},
		{"no entries", "an object without managedFields would be a panic", nil, label, false},
	}
	for _, test := range tests {
		if got := AppliedAlone(managed(t, test.entries...), "kubectl").Has(test.names...); got != test.want {
			t.Errorf("%s: got %v: %s", test.name, got, test.wrong)
		}
	}
}

// TestNotOurs checks which fields of a spec would be lost with the object.
func TestNotOurs(t *testing.T) {
	ours := entry("clusteredcache", "Apply", replicas)
	type list = []string
	tests := []struct {
		name, wrong string
		entries     list
		want        list
	}{
		{"ours", "a person would be asked about our own fields", list{ours}, nil},
		{"theirs", "the field would be lost without a word", list{ours, entry("mesh", "Update", strategy)}, list{"spec.updateStrategy.type"}},
		{"shared", "we set it again ourselves", list{ours, entry("hpa", "Update", replicas)}, nil},
		{"set by admission in our request", "admission sets it again", list{ours, entry("clusteredcache", "Update", strategy)}, nil},
		{"sorted", "the message would change from pass to pass",
			list{entry("b", "Update", strategy), entry("a", "Update", `{"f:spec":{"f:minReadySeconds":{}}}`)},
			list{"spec.minReadySeconds", "spec.updateStrategy.type"}},
		{"a list item", "the message would not name the field", list{entry("mesh", "Update", variable)},
			list{"spec.template.spec.containers[cache].env[PASSWORD].name", "spec.template.spec.containers[cache].env[PASSWORD].value"}},
		{"the status", "the status comes back by itself",
			list{strings.Replace(inStatus, `"clusteredcache"`, `"kube-controller-manager"`, 1)}, nil},
		{"metadata", "labels are carried over", list{entry("mesh", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}}}`)}, nil},
		{"without fields", "an entry without fields would be a panic", list{empty}, nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, NotOurs(managed(t, test.entries...))); diff != "" {
			t.Errorf("%s: %s:\n%s", test.name, test.wrong, diff)
		}
	}
}

// TestJoin checks the paths in reports. Package report compares them with the
// paths of managedFields, to find out what it may show.
func TestJoin(t *testing.T) {
	for _, test := range []struct{ path, name, want string }{
		{"", "spec", "spec"},
		{"spec", "size", "spec.size"},
		{"metadata.labels", "app.kubernetes.io/name", `metadata.labels["app.kubernetes.io/name"]`},
		{"metadata.annotations", `a"b`, `metadata.annotations["a\"b"]`},
		{"metadata.annotations", "a[0]", `metadata.annotations["a[0]"]`},
		{"", "a.b", `["a.b"]`},
		{"spec.containers[cache]", "image", "spec.containers[cache].image"},
	} {
		if got := Join(test.path, test.name); got != test.want {
			t.Errorf("Join(%q, %q) = %s, want %s", test.path, test.name, got, test.want)
		}
	}
}
