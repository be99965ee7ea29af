package fields

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "example.com/clusteredcache/api/v1"
)

// Strays are the fields of a live object that an apply of an intent would leave
// in the way. An apply removes what only we own and no longer want. It leaves
// fields that another manager owns. So strays are first moved to our entry in
// managedFields. That changes no value, and the apply that follows removes them.
type Strays struct {
	intent runtime.ApplyConfiguration
	live   Object
	set    *fieldpath.Set
	why    []string
}

// StraysOf returns the leftovers of an object's pod template as its first strays.
func StraysOf(intent runtime.ApplyConfiguration, live Object) Strays {
	s := Strays{intent: intent, live: live, set: leftovers(intent, live)}
	if !s.Empty() {
		s.why = []string{"fields are left that were set before or without server-side apply"}
	}
	return s
}

// Empty reports whether nothing is in the way.
func (s *Strays) Empty() bool { return s.set.Empty() }

// Why returns the reasons why the fields are in the way.
func (s *Strays) Why() string { return strings.Join(s.why, "; ") }

// AddOwner adds the owner reference with this uid.
func (s *Strays) AddOwner(why string, uid types.UID) {
	s.add(why, fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(uid))))
}

// AddRenumbered adds the live ports that have the same name as one of ours but
// another number or protocol. The API server refuses two ports with one name.
func (s *Strays) AddRenumbered() {
	for _, p := range renumbered(s.intent, s.live) {
		s.add("a port of ours has another number", p)
	}
}

// AddExcluded adds the live fields that exclude one of our fields. The API server
// refuses an object that has both.
func (s *Strays) AddExcluded() {
	u := unions{}
	u.fields(follow(reflect.ValueOf(s.intent)), follow(reflect.ValueOf(s.live)))
	for _, p := range u.excluded {
		s.add("somebody else set a field that excludes one of ours", p)
	}
}

// add adds p, unless only we own it: an apply then removes it anyway.
func (s *Strays) add(why string, p fieldpath.Path) {
	if ownedByUsAlone(s.live, p) {
		return
	}
	s.set.Insert(p)
	if !slices.Contains(s.why, why) {
		s.why = append(s.why, why)
	}
}

// Owned returns the managedFields of the live object with the strays, and all
// fields below them, moved to our entry.
func (s *Strays) Owned() []metav1.ManagedFieldsEntry {
	ours := metav1.ManagedFieldsEntry{Manager: v1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1"}
	ours.APIVersion = apiVersionOf(s.intent)
	moved := s.set.Copy()
	var others []metav1.ManagedFieldsEntry
	for _, e := range s.live.GetManagedFields() {
		switch {
		case e.FieldsV1 == nil || e.Subresource != "":
			others = append(others, e)
			continue
		case isOurs(e):
			ours, moved = e, moved.Union(parseSet(e.FieldsV1.GetRawBytes()))
			continue
		}
		set := parseSet(e.FieldsV1.GetRawBytes())
		below := under(set, s.set)
		if below.Empty() {
			others = append(others, e)
			continue
		}
		moved = moved.Union(below)
		if rest := set.Difference(below); !rest.Empty() {
			e.FieldsV1 = fieldsOf(rest)
			others = append(others, e)
		}
	}
	ours.FieldsV1 = fieldsOf(moved)
	return append([]metav1.ManagedFieldsEntry{ours}, others...)
}

// under returns the members of set that are one of the roots or are below one.
func under(set, roots *fieldpath.Set) *fieldpath.Set {
	below := &fieldpath.Set{}
	set.Iterate(func(p fieldpath.Path) {
		for i := range p {
			if roots.Has(p[:i+1]) {
				below.Insert(p.Copy())
				return
			}
		}
	})
	return below
}

func fieldsOf(set *fieldpath.Set) *metav1.FieldsV1 {
	raw, err := set.ToJSON()
	if err != nil {
		panic(err) // a set that was read from JSON can be written as JSON
	}
	return metav1.NewFieldsV1(string(raw))
}

func apiVersionOf(intent runtime.ApplyConfiguration) string {
	shape := shapeOf(follow(reflect.ValueOf(intent)).Type())
	return shape.value(follow(reflect.ValueOf(intent)), "apiVersion").String()
}

func ownedByUsAlone(live Object, p fieldpath.Path) bool {
	roots, ours := fieldpath.NewSet(p), false
	for _, e := range live.GetManagedFields() {
		if e.FieldsV1 == nil || e.Subresource != "" || under(parseSet(e.FieldsV1.GetRawBytes()), roots).Empty() {
			continue
		}
		if !isOurs(e) {
			return false
		}
		ours = true
	}
	return ours
}

// leftovers returns the fields of the pod template that nobody wants any more.
// Forerunners own them, the intent does not have them, and no other manager owns
// them. The whole template is ours. Elsewhere (labels, annotations, the update
// strategy) others keep what they set.
func leftovers(intent runtime.ApplyConfiguration, object Object) *fieldpath.Set {
	left := &fieldpath.Set{}
	live, ok := object.(*appsv1.StatefulSet)
	if !ok {
		return left
	}
	theirs, others := byForerunners(live)
	if theirs.Empty() {
		return left
	}
	wanted := others.Union(parseSet(fieldSet(intent)))
	d := diff{live: live}
	// Iterate visits a field before the fields below it.
	theirs.Difference(wanted).Iterate(func(p fieldpath.Path) {
		value := d.liveJSON(p)
		if ofTemplate(p) && value != "" && !isDefault(p, value) && under(wanted, fieldpath.NewSet(p)).Empty() {
			left.Insert(p.Copy())
		}
	})
	return left
}

// byForerunners returns what forerunners own, and what others own apart from us.
// Forerunners set fields of the object before anybody used server-side apply on it.
// They are kubectl's client-side apply, and the writers from before managedFields
// were kept or after they were cleared.
func byForerunners(live *appsv1.StatefulSet) (theirs, others *fieldpath.Set) {
	theirs, others = &fieldpath.Set{}, &fieldpath.Set{}
	if len(live.ManagedFields) == 0 {
		return templateSet(live), others
	}
	if !slices.ContainsFunc(live.ManagedFields, isForerunners) {
		return theirs, others // nothing needs to be parsed
	}
	for _, e := range live.ManagedFields {
		switch {
		case isForerunners(e):
			theirs = theirs.Union(parseSet(e.FieldsV1.GetRawBytes()))
		case !isOurs(e) && e.FieldsV1 != nil:
			others = others.Union(parseSet(e.FieldsV1.GetRawBytes()))
		}
	}
	return theirs, others
}

func isForerunners(e metav1.ManagedFieldsEntry) bool {
	return (e.Manager == "kubectl-client-side-apply" || e.Manager == "before-first-apply") &&
		e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && e.FieldsV1 != nil
}

// templateSet returns the field set that an apply of the whole live template
// would make.
func templateSet(live *appsv1.StatefulSet) *fieldpath.Set {
	all := acappsv1.StatefulSetApplyConfiguration{Spec: &acappsv1.StatefulSetSpecApplyConfiguration{}}
	raw, err := json.Marshal(live.Spec.Template)
	if err != nil || json.Unmarshal(raw, &all.Spec.Template) != nil {
		return &fieldpath.Set{}
	}
	return parseSet(fieldSet(&all))
}

var (
	podSpec    = fieldpath.MakePathOrDie("spec", "template", "spec")
	configHash = fieldpath.MakePathOrDie("spec", "template", "metadata", "annotations", v1.ConfigHashAnnotation)
)

func ofTemplate(p fieldpath.Path) bool {
	return p.Equals(configHash) || len(p) > len(podSpec) && p[:len(podSpec)].Equals(podSpec)
}

// isDefault reports whether the server would set the field to this value again.
func isDefault(p fieldpath.Path, value string) bool {
	last := p[len(p)-1].FieldName
	if last == nil {
		return false
	}
	byDefault, known := serverDefaults[*last]
	return known && (byDefault.json == value || byDefault.json == "")
}

func renumbered(intent runtime.ApplyConfiguration, object Object) []fieldpath.Path {
	switch live := object.(type) {
	case *corev1.Service:
		var have []port
		for _, p := range live.Spec.Ports {
			have = append(have, port{p.Name, p.Port, p.Protocol})
		}
		return misnumbered(intent, []any{"spec", "ports"}, "port", have)
	case *appsv1.StatefulSet:
		var paths []fieldpath.Path
		for _, container := range live.Spec.Template.Spec.Containers {
			var have []port
			for _, p := range container.Ports {
				have = append(have, port{p.Name, p.ContainerPort, p.Protocol})
			}
			list := []any{"spec", "template", "spec", "containers", fieldpath.KeyByFields("name", container.Name), "ports"}
			paths = append(paths, misnumbered(intent, list, "containerPort", have)...)
		}
		return paths
	}
	return nil
}

// port is what identifies a port of a Service or a container.
type port struct {
	name     string
	number   int32
	protocol corev1.Protocol
}

func misnumbered(intent runtime.ApplyConfiguration, list []any, number string, have []port) []fieldpath.Path {
	var wanted []map[string]any
	if json.Unmarshal([]byte(valueAt(intent, fieldpath.MakePathOrDie(list...))), &wanted) != nil {
		return nil // the intent has no such list
	}
	var paths []fieldpath.Path
	for _, h := range have {
		key := fieldpath.KeyByFields(number, int64(h.number), "protocol", string(h.protocol))
		for _, w := range wanted {
			if w["name"] == h.name && fmt.Sprint(w[number], w["protocol"]) != fmt.Sprint(h.number, h.protocol) {
				paths = append(paths, fieldpath.MakePathOrDie(append(list[:len(list):len(list)], key)...))
			}
		}
	}
	return paths
}

// unions finds live fields that exclude intended ones. Both are members of a group
// of which the API server allows only one.
type unions struct {
	path     []pathElement
	excluded []fieldpath.Path
}

// unionMembers returns a function that reports whether a field of t belongs to
// the group of which at most one may be set.
func unionMembers(t reflect.Type) func(name string) bool {
	members, ok := unionTypes[t]
	return func(name string) bool {
		return ok && (members == "" && name != "name" || strings.Contains(members, " "+name+" "))
	}
}

// fields checks the fields of a struct and everything below them.
func (u *unions) fields(want, live reflect.Value) {
	if !live.IsValid() || live.Kind() != reflect.Struct {
		return
	}
	wantShape, liveShape := shapeOf(want.Type()), shapeOf(live.Type())
	member, chosen := unionMembers(live.Type()), false
	for i := range wantShape.fields {
		f := &wantShape.fields[i]
		v, set := f.intended(want)
		if !set {
			continue
		}
		chosen = chosen || member(f.name)
		u.path = append(u.path, pathElement{field: f.name})
		u.below(f, v, liveShape.value(live, f.name))
		u.path = u.path[:len(u.path)-1]
	}
	for i := range liveShape.fields {
		f := &liveShape.fields[i]
		if v := f.get(live); chosen && member(f.name) && v.IsValid() && !v.IsZero() && !wantShape.value(want, f.name).IsValid() {
			u.excluded = append(u.excluded, fieldPath(append(u.path[:len(u.path):len(u.path)], pathElement{field: f.name})))
		}
	}
}

func (u *unions) below(f *structField, want, live reflect.Value) {
	switch f.shape {
	case shapeStruct:
		u.fields(want, live)
	case shapeKeyed:
		for i := range want.Len() {
			item := follow(want.Index(i))
			u.path = append(u.path, pathElement{keys: f.keys, item: item})
			u.fields(item, findItem(f.keys, item, live))
			u.path = u.path[:len(u.path)-1]
		}
	}
}
