package fields

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// The tables below are what server-side apply knows about our kinds beyond their
// Go types. They say which lists have which keys, and which lists, maps and
// structs are one value. A test compares them with the schema that client-go
// ships, for random objects of every kind we write.

// keyField is a merge key of a keyed list, with the server's default for the key.
type keyField struct{ name, byDefault string }

// keyedLists maps the element type of a list to its merge keys, in name order. A
// list of any other element type is one value.
var keyedLists = map[reflect.Type][]keyField{
	elem[acmetav1.OwnerReferenceApplyConfiguration]():                 {{name: "uid"}},
	elem[acmetav1.ConditionApplyConfiguration]():                      {{name: "type"}},
	elem[accorev1.ContainerApplyConfiguration]():                      {{name: "name"}},
	elem[accorev1.EphemeralContainerApplyConfiguration]():             {{name: "name"}},
	elem[accorev1.ContainerPortApplyConfiguration]():                  {{name: "containerPort"}, {name: "protocol", byDefault: "TCP"}},
	elem[accorev1.ServicePortApplyConfiguration]():                    {{name: "port"}, {name: "protocol", byDefault: "TCP"}},
	elem[accorev1.EnvVarApplyConfiguration]():                         {{name: "name"}},
	elem[accorev1.VolumeApplyConfiguration]():                         {{name: "name"}},
	elem[accorev1.VolumeMountApplyConfiguration]():                    {{name: "mountPath"}},
	elem[accorev1.VolumeDeviceApplyConfiguration]():                   {{name: "devicePath"}},
	elem[accorev1.ResourceClaimApplyConfiguration]():                  {{name: "name"}},
	elem[accorev1.PodResourceClaimApplyConfiguration]():               {{name: "name"}},
	elem[accorev1.PodSchedulingGateApplyConfiguration]():              {{name: "name"}},
	elem[accorev1.EvictionResponderApplyConfiguration]():              {{name: "name"}},
	elem[accorev1.HostAliasApplyConfiguration]():                      {{name: "ip"}},
	elem[accorev1.LocalObjectReferenceApplyConfiguration]():           {{name: "name"}},
	elem[accorev1.TopologySpreadConstraintApplyConfiguration]():       {{name: "topologyKey"}, {name: "whenUnsatisfiable"}},
	elem[acappsv1.StatefulSetConditionApplyConfiguration]():           {{name: "type"}},
	elem[accorev1.PersistentVolumeClaimConditionApplyConfiguration](): {{name: "type"}},
}

// setLists has the names of the string lists that are sets.
var setLists = map[string]bool{"finalizers": true, "bindMountOptions": true}

// atomicStructs has the structs that are owned as a whole. The server may still
// set defaults inside them.
var atomicStructs = map[reflect.Type]bool{
	elem[acmetav1.OwnerReferenceApplyConfiguration]():            true,
	elem[acmetav1.LabelSelectorApplyConfiguration]():             true,
	elem[accorev1.EvictionResponderApplyConfiguration]():         true,
	elem[accorev1.LocalObjectReferenceApplyConfiguration]():      true,
	elem[accorev1.TypedLocalObjectReferenceApplyConfiguration](): true,
	elem[accorev1.SecretKeySelectorApplyConfiguration]():         true,
	elem[accorev1.ConfigMapKeySelectorApplyConfiguration]():      true,
	elem[accorev1.ObjectFieldSelectorApplyConfiguration]():       true,
	elem[accorev1.ResourceFieldSelectorApplyConfiguration]():     true,
	elem[accorev1.FileKeySelectorApplyConfiguration]():           true,
	elem[accorev1.NodeSelectorApplyConfiguration]():              true,
	elem[accorev1.NodeSelectorTermApplyConfiguration]():          true,
	elem[accorev1.SecretReferenceApplyConfiguration]():           true,
}

// atomicMaps has, by the enclosing type, the name of the map that is owned as a
// whole.
var atomicMaps = map[reflect.Type]string{
	elem[accorev1.ServiceSpecApplyConfiguration](): "selector",
	elem[accorev1.PodSpecApplyConfiguration]():     "nodeSelector",
}

// scalarStructs has the Go structs that are one value in JSON.
var scalarStructs = map[reflect.Type]bool{
	elem[resource.Quantity]():  true,
	elem[intstr.IntOrString](): true,
	elem[metav1.Time]():        true,
}

// serverDefaults has the values that the API server gives to omitted fields of a
// pod template.
var serverDefaults = map[string]struct {
	// json is the default as JSON. It is "" if the default depends on other fields.
	json string
	// zero reports whether the server replaces an explicit zero by the default too.
	zero bool
}{
	"timeoutSeconds":                {"1", true},
	"periodSeconds":                 {"10", true},
	"successThreshold":              {"1", true},
	"failureThreshold":              {"3", true},
	"scheme":                        {`"HTTP"`, true},
	"apiVersion":                    {`"v1"`, true},
	"protocol":                      {`"TCP"`, true},
	"terminationMessagePath":        {`"/dev/termination-log"`, true},
	"terminationMessagePolicy":      {`"File"`, true},
	"restartPolicy":                 {`"Always"`, true},
	"dnsPolicy":                     {`"ClusterFirst"`, true},
	"schedulerName":                 {`"default-scheduler"`, true},
	"terminationGracePeriodSeconds": {"30", false},
	"defaultMode":                   {"420", false},
	"securityContext":               {"{}", false},
	"serviceAccount":                {"", false}, // mirrors serviceAccountName
	"imagePullPolicy":               {"", false}, // by the tag
}

// unionTypes maps a live type to those of its fields of which at most one may be
// set. "" stands for all fields except the name.
var unionTypes = map[reflect.Type]string{
	elem[corev1.Probe]():                     " exec httpGet tcpSocket grpc ",
	elem[corev1.LifecycleHandler]():          " exec httpGet tcpSocket sleep ",
	elem[corev1.Volume]():                    "",
	elem[corev1.EnvVar]():                    " value valueFrom ",
	elem[corev1.EnvVarSource]():              "",
	elem[policyv1.PodDisruptionBudgetSpec](): " minAvailable maxUnavailable ",
}

func elem[T any]() reflect.Type { return reflect.TypeFor[T]() }

// fieldShape is how the value of a field is owned.
type fieldShape int

const (
	shapeScalar fieldShape = iota // one value
	shapeAtomic                   // a composite owned as one value
	shapeStruct
	shapeMap
	shapeKeyed // a list whose items are named by merge keys
	shapeSet   // a list of strings, each named by its value
)

// structField is a JSON field of a Go struct, or of a struct that is inlined in it.
type structField struct {
	name   string
	member string // starts the field in managedFields: "f:name":
	index  []int
	shape  fieldShape
	keys   []keyField // only for shapeKeyed
}

// structShape lists the fields of a type in name order.
type structShape struct {
	fields []structField
	byName map[string]int
	pairs  sync.Map // maps a live reflect.Type to its counterparts
}

var shapes sync.Map // maps a reflect.Type to its *structShape

func shapeOf(t reflect.Type) *structShape {
	if s, ok := shapes.Load(t); ok {
		return s.(*structShape)
	}
	s := &structShape{byName: map[string]int{}}
	s.collect(t, nil)
	slices.SortFunc(s.fields, func(a, b structField) int { return strings.Compare(a.name, b.name) })
	for i, f := range s.fields {
		s.byName[f.name] = i
	}
	actual, _ := shapes.LoadOrStore(t, s)
	return actual.(*structShape)
}

func (s *structShape) collect(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(prefix), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			s.collect(deref(f.Type), index)
		case name != "":
			sf := structField{name: name, member: string(appendKey([]byte{'{'}, "f:", name)[1:]), index: index}
			sf.shape, sf.keys = shapeOfField(t, name, deref(f.Type))
			s.fields = append(s.fields, sf)
		}
	}
}

func shapeOfField(parent reflect.Type, name string, t reflect.Type) (fieldShape, []keyField) {
	switch t.Kind() {
	case reflect.Struct:
		switch {
		case scalarStructs[t]:
			return shapeScalar, nil
		case atomicStructs[t]:
			return shapeAtomic, nil
		}
		return shapeStruct, nil
	case reflect.Map:
		if atomicMaps[parent] == name {
			return shapeAtomic, nil
		}
		return shapeMap, nil
	case reflect.Slice:
		if keys, ok := keyedLists[deref(t.Elem())]; ok {
			return shapeKeyed, keys
		}
		if setLists[name] {
			return shapeSet, nil
		}
		return shapeAtomic, nil
	}
	return shapeScalar, nil
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// get returns the field's value and follows pointers. It returns the zero Value
// when something on the way is nil.
func (f *structField) get(v reflect.Value) reflect.Value {
	return follow(f.raw(v))
}

// intended is get for an apply configuration. It also reports whether the JSON of
// the configuration has the field. JSON omits nil pointers and empty lists and
// maps, but has an empty map behind a pointer.
func (f *structField) intended(v reflect.Value) (reflect.Value, bool) {
	raw := f.raw(v)
	switch {
	case !raw.IsValid():
		return raw, false
	case raw.Kind() == reflect.Slice || raw.Kind() == reflect.Map:
		return raw, raw.Len() > 0
	}
	raw = follow(raw)
	return raw, raw.IsValid()
}

func (f *structField) raw(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		if v = follow(v); !v.IsValid() {
			return v
		}
		v = v.Field(i)
	}
	return v
}

func follow(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}
