package plan

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
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v1 "example.com/clusteredcache/api/v1"
)

// An apply removes what we own and no longer want, and nothing that somebody
// else owns. Where that stands in the way of the object that we want, it is
// claimed first: its ownership is moved to us in managedFields, which changes
// no value, and the apply that follows removes it.

// claim is what has to be claimed of a live object, and why.
type claim struct {
	live   Object
	strays *fieldpath.Set
	why    []string
}

// strays are what an apply of the intent would leave in the way.
func strays(in Input, c child) claim {
	found := claim{live: c.live, strays: leftovers(c)}
	if found.strays != nil {
		found.why = []string{"fields are left that were set before or without server-side apply"}
	}
	if ref := formerOwner(c.live, in.Cache); ref != nil {
		found.add("taken over from a former cache of this name", fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(ref.UID))))
	}
	for _, p := range renumbered(c) {
		found.add("a port of ours has another number", p)
	}
	u := unions{}
	u.fields(follow(reflect.ValueOf(c.intent)), follow(reflect.ValueOf(c.live)))
	for _, p := range u.excluded {
		found.add("somebody else set a field that excludes one of ours", p)
	}
	return found
}

// add claims p, unless it is ours alone: then an apply removes it without help.
func (f *claim) add(why string, p fieldpath.Path) {
	if ownedByUsAlone(f.live, p) {
		return
	}
	if f.strays == nil {
		f.strays = &fieldpath.Set{}
	}
	f.strays.Insert(p)
	if !slices.Contains(f.why, why) {
		f.why = append(f.why, why)
	}
}

// step is the claim as a step, and the object as it is afterwards.
func (f claim) step(c child) (Step, Object) {
	after := c.live.DeepCopyObject().(Object)
	after.SetManagedFields(claimed(c, f.strays))
	return Step{Action: ActionClaim, Target: c.ref, Live: c.live, Managers: after.GetManagedFields(), Reason: strings.Join(f.why, "; ") + " (only managedFields are written)"}, after
}

// claimed are the managedFields of the live object with the strays, and what is
// below them, moved to our entry.
func claimed(c child, strays *fieldpath.Set) []metav1.ManagedFieldsEntry {
	ours := metav1.ManagedFieldsEntry{Manager: v1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1"}
	ours.APIVersion = apiVersionOf(c.intent)
	moved := strays.Copy()
	var others []metav1.ManagedFieldsEntry
	for _, e := range c.live.GetManagedFields() {
		switch {
		case e.FieldsV1 == nil || e.Subresource != "":
			others = append(others, e)
			continue
		case isOurs(e):
			ours, moved = e, moved.Union(parseSet(e.FieldsV1.GetRawBytes()))
			continue
		}
		set := parseSet(e.FieldsV1.GetRawBytes())
		below := under(set, strays)
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

// under are the members of set that are one of the roots or below one.
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
		panic(err) // a set that was read from JSON can be written
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

// leftovers are fields of the pod template that nobody wants any more: those
// of forerunners that neither the intent has nor anybody else owns. The template
// is ours as a whole; elsewhere (labels, annotations, the update strategy) what
// others put is theirs.
func leftovers(c child) *fieldpath.Set {
	live, ok := c.live.(*appsv1.StatefulSet)
	if !ok {
		return nil
	}
	theirs, others := byForerunners(live)
	if theirs.Empty() {
		return nil
	}
	wanted := others.Union(parseSet(fieldSet(c.intent)))
	d, left := diff{live: live}, &fieldpath.Set{}
	// A field comes before those below it.
	theirs.Difference(wanted).Iterate(func(p fieldpath.Path) {
		value := d.liveJSON(p)
		if ofTemplate(p) && value != "" && !isDefault(p, value) && under(wanted, fieldpath.NewSet(p)).Empty() {
			left.Insert(p.Copy())
		}
	})
	if left.Empty() {
		return nil
	}
	return left
}

// byForerunners is what forerunners own, and what others do that are not us.
// Forerunners own what an object had before anybody used server-side apply on
// it: kubectl's client-side apply, and whoever wrote before managedFields were
// kept, or were cleared.
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

// templateSet is the field set that an apply of the whole live template would
// make.
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

// isDefault tells a field that the server would fill in again.
func isDefault(p fieldpath.Path, value string) bool {
	last := p[len(p)-1].FieldName
	if last == nil {
		return false
	}
	byDefault, known := serverDefaults[*last]
	return known && (byDefault.json == value || byDefault.json == "")
}

// renumbered are the live ports that have the name of one of ours and another
// number: a second port of one name is refused.
func renumbered(c child) []fieldpath.Path {
	switch live := c.live.(type) {
	case *corev1.Service:
		var have []port
		for _, p := range live.Spec.Ports {
			have = append(have, port{p.Name, p.Port, p.Protocol})
		}
		return misnumbered(c.intent, []any{"spec", "ports"}, "port", have)
	case *appsv1.StatefulSet:
		var paths []fieldpath.Path
		for _, container := range live.Spec.Template.Spec.Containers {
			var have []port
			for _, p := range container.Ports {
				have = append(have, port{p.Name, p.ContainerPort, p.Protocol})
			}
			list := []any{"spec", "template", "spec", "containers", fieldpath.KeyByFields("name", container.Name), "ports"}
			paths = append(paths, misnumbered(c.intent, list, "containerPort", have)...)
		}
		return paths
	}
	return nil
}

// port is what tells ports apart, of Services and containers alike.
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

// unions finds live fields that exclude intended ones: the API server refuses
// an object that has two members of such a group.
type unions struct {
	path     []pathElement
	excluded []fieldpath.Path
}

// unionMembers: the fields of a type of which one at most may be set.
func unionMembers(t reflect.Type) func(name string) bool {
	members, ok := unionTypes[t]
	return func(name string) bool {
		return ok && (members == "" && name != "name" || strings.Contains(members, " "+name+" "))
	}
}

// fields looks at the fields of a struct, and below.
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
