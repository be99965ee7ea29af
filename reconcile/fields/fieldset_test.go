package fields

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	acpolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The tables in schema.go are held against the schema that client-go ships:
// random apply configurations of every built-in kind we write, with every
// field of a pod template in play, must give the same set either way.
func TestFieldSetIsTheServers(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(clientscheme.Scheme)
	for seed := range int64(400) {
		fill := filler(seed)
		sts, svc, pdb := acappsv1.StatefulSet("c", "ns"), accorev1.Service("c", "ns"), acpolicyv1.PodDisruptionBudget("c", "ns")
		fill.Fill(&sts.Spec)
		fill.Fill(&sts.Labels)
		fill.Fill(&sts.OwnerReferences)
		fill.Fill(&sts.Finalizers)
		fill.Fill(&svc.Spec)
		fill.Fill(&pdb.Spec)
		if sts.Spec != nil {
			for i := range sts.Spec.VolumeClaimTemplates {
				sts.Spec.VolumeClaimTemplates[i].Status = nil
			}
		}
		for _, intent := range []any{sts, svc, pdb} {
			setKeys(reflect.ValueOf(intent), new(int64))
		}
		for _, intent := range []runtime.ApplyConfiguration{sts, svc, pdb} {
			got, want := string(fieldSet(intent)), libraryFieldSet(t, converter, intent)
			if got != want {
				g, w := parseSet([]byte(got)), parseSet([]byte(want))
				t.Errorf("seed %d, %T: only here: %v\nonly in the library's: %v\n%s", seed, intent, g.Difference(w), w.Difference(g), cmp.Diff(want, got))
			}
		}
	}
}

// libraryFieldSet is the set that structured-merge-diff makes of the intent,
// as the API server does.
func libraryFieldSet(t *testing.T, converter managedfields.TypeConverter, intent runtime.ApplyConfiguration) string {
	t.Helper()
	raw, err := json.Marshal(intent)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		t.Fatal(err)
	}
	typed, err := converter.ObjectToTyped(u)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	strip := fieldpath.NewSet(fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
		fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"))
	out, err := set.Difference(strip).ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// setKeys gives every item of a keyed list merge keys of its own.
func setKeys(v reflect.Value, n *int64) {
	v = follow(v)
	if !v.IsValid() || v.Kind() != reflect.Struct || scalarStructs[v.Type()] {
		return
	}
	for _, f := range shapeOf(v.Type()).fields {
		fv := f.get(v)
		if !fv.IsValid() || fv.Kind() != reflect.Slice {
			setKeys(fv, n)
			continue
		}
		for i := range fv.Len() {
			item := follow(fv.Index(i))
			for _, k := range f.keys {
				*n++
				setKey(item.FieldByIndex(shapeOf(item.Type()).fields[shapeOf(item.Type()).byName[k.name]].index), *n)
			}
			setKeys(item, n)
		}
	}
}

func setKey(key reflect.Value, n int64) {
	key.Set(reflect.New(key.Type().Elem()))
	if key.Elem().Kind() == reflect.String {
		key.Elem().SetString(fmt.Sprintf("k%d", n%7*1000+n))
	} else {
		key.Elem().SetInt(n%7*1000 + n)
	}
}

// filler fills everything, with short lists whose keys do not repeat.
func filler(seed int64) *randfill.Filler {
	n := 0
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(1, 3).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) { n++; *s = fmt.Sprintf("s%d-%d", c.Intn(90), n) },
		func(i *int32, c randfill.Continue) { n++; *i = int32(n) },
		func(i *int64, c randfill.Continue) { n++; *i = int64(n) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(int32(c.Intn(1000))) },
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63n(1e9), 0) },
		// A set inside an atomic list: repeated values are refused, and no path leads there.
		func(*accorev1.ContainerRestartRuleOnExitCodesApplyConfiguration, randfill.Continue) {},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString("{}") },
	)
}
