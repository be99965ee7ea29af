package fields

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	acpolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
)

// withImage is the intent of the rows about pod templates: one container, one image.
func withImage() *acappsv1.StatefulSetApplyConfiguration {
	return acappsv1.StatefulSet("cache", "shop").WithSpec(acappsv1.StatefulSetSpec().WithTemplate(accorev1.PodTemplateSpec().WithSpec(
		accorev1.PodSpec().WithContainers(accorev1.Container().WithName("cache").WithImage("memcached:1")))))
}

// template and templateSpec are the JSON of a StatefulSet before and after the
// entries of managedFields. Its container has a command that the intent does not
// have, and defaults of the server.
const template = `{"metadata": {"name": "cache", "managedFields": [`

const templateSpec = `]}, "spec": {"template": {"spec": {"dnsPolicy": "ClusterFirst", "containers": [
	{"name": "cache", "image": "memcached:1", "command": ["sh"], "imagePullPolicy": "IfNotPresent"}]}}}}`

const (
	// container is the field set of the container of a forerunner.
	container = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{".":{},"f:command":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{}}},"f:dnsPolicy":{}}}}}`
	// rest is container without its stray.
	rest = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{}}},"f:dnsPolicy":{}}}}}`
	// command is the stray.
	command = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{"f:command":{}}}}}}}`
	// cleared is the stray when managedFields are empty. Go writes resources even if
	// they are empty, so that nobody knows whether they were set.
	cleared = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{"f:command":{},"f:resources":{}}}}}}}`
	// ourContainer is what we own after an apply.
	ourContainer = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`
	// both is ourContainer with the stray.
	both = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{".":{},"f:command":{},"f:image":{},"f:name":{}}}}}}}`

	owner      = `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u-0\"}":{}}}}`
	httpPort   = `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`
	available  = `{"f:spec":{"f:minAvailable":{}}}`
	leftBefore = "fields are left that were set before or without server-side apply"
	renumber   = "a port of ours has another number"
	excludes   = "somebody else set a field that excludes one of ours"
)

// owned is an entry of managedFields in a comparison.
type owned struct{ Manager, Operation, Fields string }

// TestStrays checks which live fields are in the way of an apply, and what
// managedFields says when they have moved to us.
func TestStrays(t *testing.T) {
	set, service, budget := &appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}
	ports := func(number int32) *accorev1.ServiceApplyConfiguration {
		return accorev1.Service("cache", "shop").WithSpec(accorev1.ServiceSpec().WithPorts(
			accorev1.ServicePort().WithName("cache").WithPort(number).WithProtocol("TCP")))
	}
	liveService := func(entries string) string {
		return `{"metadata": {"managedFields": [` + entries + `]}, "spec": {"ports": [{"name": "cache", "port": 80, "protocol": "TCP"}]}}`
	}
	tests := []struct {
		name, wrong string
		intent      runtime.ApplyConfiguration
		kind        Object
		live        string
		add         func(s *Strays)
		why         string
		want        []owned // nil if there are no strays
	}{
		{"a field of client-side apply", "the command of an earlier tool would stay for ever",
			withImage(), set, template + entry("kubectl-client-side-apply", "Update", container) + templateSpec, nil, leftBefore,
			[]owned{{"clusteredcache", "Apply", command}, {"kubectl-client-side-apply", "Update", rest}}},
		{"a field from before managedFields", "the command of an earlier tool would stay for ever",
			withImage(), set, template + entry("before-first-apply", "Update", container) + templateSpec, nil, leftBefore,
			[]owned{{"clusteredcache", "Apply", command}, {"before-first-apply", "Update", rest}}},
		{"our entry exists", "our own fields would be lost",
			withImage(), set, template + entry("clusteredcache", "Apply", ourContainer) + "," + entry("kubectl-client-side-apply", "Update", container) + templateSpec,
			nil, leftBefore,
			[]owned{{"clusteredcache", "Apply", both}, {"kubectl-client-side-apply", "Update", rest}}},
		{"managedFields were cleared", "nobody would ever remove the command",
			withImage(), set, template + templateSpec, nil, leftBefore, []owned{{"clusteredcache", "Apply", cleared}}},
		{"a field that another manager wants too", "the field of a service mesh would be removed",
			withImage(), set, template + entry("kubectl-client-side-apply", "Update", container) + "," + entry("mesh", "Update", command) + templateSpec, nil, "", nil},
		{"a field of another manager alone", "the field of a service mesh would be removed",
			withImage(), set, template + entry("mesh", "Update", container) + templateSpec, nil, "", nil},
		{"an earlier owner", "the object would be deleted together with its earlier owner",
			withImage(), set, `{"metadata": {"ownerReferences": [{"uid": "u-0"}], "managedFields": [` + entry("operator", "Update", owner) + `]}}`,
			func(s *Strays) { s.AddOwner("it had another owner", "u-0") }, "it had another owner",
			[]owned{{"clusteredcache", "Apply", owner}}},
		{"an earlier owner that we set", "a needless write would come before each apply",
			withImage(), set, `{"metadata": {"ownerReferences": [{"uid": "u-0"}], "managedFields": [` + entry("clusteredcache", "Apply", owner) + `]}}`,
			func(s *Strays) { s.AddOwner("it had another owner", "u-0") }, "", nil},
		{"a port with another number", "the API server refuses two ports of one name",
			ports(8080), service, liveService(entry("helm", "Update", httpPort)), (*Strays).AddRenumbered, renumber,
			[]owned{{"clusteredcache", "Apply", httpPort}}},
		{"a port with our number", "a needless write would come before each apply",
			ports(80), service, liveService(entry("helm", "Update", httpPort)), (*Strays).AddRenumbered, "", nil},
		{"a port with another number that is ours", "an apply replaces it without help",
			ports(8080), service, liveService(entry("clusteredcache", "Apply", httpPort)), (*Strays).AddRenumbered, "", nil},
		{"a field that excludes ours", "the API server refuses a budget with both",
			acpolicyv1.PodDisruptionBudget("cache", "shop").WithSpec(acpolicyv1.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1))),
			budget, `{"metadata": {"managedFields": [` + entry("kubectl-edit", "Update", available) + `]}, "spec": {"minAvailable": 2}}`,
			(*Strays).AddExcluded, excludes, []owned{{"clusteredcache", "Apply", available}}},
		{"the field that we want ourselves", "a needless write would come before each apply",
			acpolicyv1.PodDisruptionBudget("cache", "shop").WithSpec(acpolicyv1.PodDisruptionBudgetSpec().WithMinAvailable(intstr.FromInt32(1))),
			budget, `{"metadata": {"managedFields": [` + entry("kubectl-edit", "Update", available) + `]}, "spec": {"minAvailable": 2}}`,
			(*Strays).AddExcluded, "", nil},
	}
	for _, test := range tests {
		live := test.kind.DeepCopyObject().(Object)
		if err := json.Unmarshal([]byte(test.live), live); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		before := live.DeepCopyObject()
		s := StraysOf(test.intent, live)
		if test.add != nil {
			test.add(&s)
			test.add(&s) // the second time must not repeat the reason
		}
		if s.Why() != test.why || s.Empty() != (test.want == nil) {
			t.Errorf("%s: %s: empty %v, because %q", test.name, test.wrong, s.Empty(), s.Why())
		}
		if test.want == nil {
			continue
		}
		var got []owned
		for _, e := range s.Owned() {
			got = append(got, owned{e.Manager, string(e.Operation), e.FieldsV1.GetRawString()})
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s:\n%s", test.name, test.wrong, diff)
		}
		if diff := cmp.Diff(before, live); diff != "" {
			t.Errorf("%s: the live object was changed:\n%s", test.name, diff)
		}
	}
}
