package deploy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
)

// stored is a cache as the API server has it, in the form in which others read it.
func stored(t *testing.T, ns, name string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind))
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// What Argo CD shows of a cache, from before its first pass to its deletion.
func TestArgoCDHealth(t *testing.T) {
	installed(t)
	var patch struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/argocd/health.yaml")), &patch); err != nil {
		t.Fatal(err)
	}
	script := patch.Data["resource.customizations.health."+v1.GroupVersion.Group+"_"+v1.Kind]
	file := write(t, filepath.Join(t.TempDir(), "health.lua"), script)
	lua := filepath.Join(t.TempDir(), "lua")
	build := exec.Command("go", "build", "-C", filepath.Join(testenv.Root(), "testdata", "lua"), "-o", lua, ".")
	build.Env = append(build.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ns := env.Namespace(t)
	want := func(start string) {
		t.Helper()
		object, err := json.Marshal(stored(t, ns, "cache"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(lua, file)
		cmd.Stdin = strings.NewReader(string(object))
		if r := finish(t, cmd); r.status != 0 || !strings.HasPrefix(r.stdout, start) {
			t.Errorf("health %q, want %q\n%s%s", r.stdout, start, r.stderr, object)
		}
	}
	change := func(patch string) {
		t.Helper()
		kubectl(t, "patch", "clusteredcache", "-n", ns, "cache", "--type=merge", "-p", patch)
	}
	cacheIn(t, ns, "cache", false)
	want("Progressing: no pass has seen this spec yet")
	if r := clusteredcache(t, "reconcile", "-n", ns); r.status != 0 {
		t.Fatal(r.stderr)
	}
	want("Progressing: ")
	cacheIn(t, ns, "cache", true)
	want("Healthy: Ready: 2 of 2 nodes ready")
	change(`{"spec":{"podTemplate":{"nosuch":true}}}`)
	want("Progressing: no pass has seen this spec yet")
	clusteredcache(t, "reconcile", "-n", ns)
	want("Degraded: InvalidOverlay: ")
	change(`{"spec":{"podTemplate":null,"suspend":true}}`)
	clusteredcache(t, "reconcile", "-n", ns)
	want("Suspended: ")
	kubectl(t, "delete", "clusteredcache", "-n", ns, "cache", "--wait=false")
	want("Progressing: being deleted")
	change(`{"spec":{"suspend":false}}`)
	clusteredcache(t, "reconcile", "-n", ns, "--wait")
}

type customMetric struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Each struct {
		Type  string `json:"type"`
		Gauge struct {
			Path           []string            `json:"path"`
			LabelsFromPath map[string][]string `json:"labelsFromPath"`
			ValueFrom      []string            `json:"valueFrom"`
		} `json:"gauge"`
	} `json:"each"`
}

type customResources struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []struct {
			GroupVersionKind map[string]string   `json:"groupVersionKind"`
			Prefix           string              `json:"metricNamePrefix"`
			LabelsFromPath   map[string][]string `json:"labelsFromPath"`
			Metrics          []customMetric      `json:"metrics"`
		} `json:"resources"`
	} `json:"spec"`
}

// kube-state-metrics is not run here. What is held: every path leads to a value
// of a stored cache that it takes for a number, and the alerts use these metrics.
func TestMonitoring(t *testing.T) {
	installed(t)
	ns := env.Namespace(t)
	cacheIn(t, ns, "cache", true)
	object := stored(t, ns, "cache")
	var config customResources
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/monitoring/kube-state-metrics.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	resource := config.Spec.Resources[0]
	if g := resource.GroupVersionKind; g["group"] != v1.GroupVersion.Group || g["version"] != v1.GroupVersion.Version || g["kind"] != v1.Kind {
		t.Errorf("%v", g)
	}
	known := map[string]bool{"kube_cronjob_status_last_successful_time": true}
	for _, m := range resource.Metrics {
		known[resource.Prefix+"_"+m.Name] = true
		for _, sample := range samples(t, object, m) {
			if !slices.Contains([]string{"float64", "int64", "True", "False", "Unknown"}, sample) {
				t.Errorf("%s: a value of type %s", m.Name, sample)
			}
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string } `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/monitoring/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules.Groups[0].Rules {
		names := regexp.MustCompile(`[a-z_]+(?:\{)`).FindAllString(rule.Expr, -1)
		for _, name := range names {
			if !known[strings.TrimSuffix(name, "{")] {
				t.Errorf("%s asks for %s, which nobody exposes", rule.Alert, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s asks for nothing", rule.Alert)
		}
	}
	c, _ := cronJob(t, kustomize(t))
	if limit := int(5 * minutes(t, c.Spec.Schedule).Seconds()); !strings.Contains(rules.Groups[0].Rules[1].Expr, fmt.Sprintf("> %d", limit)) {
		t.Errorf("the alert does not wait for five periods, %d s", limit)
	}
}

// samples are the types of the values that a metric would take from an object,
// and for strings the values.
func samples(t *testing.T, object map[string]any, m customMetric) []string {
	t.Helper()
	found, ok, err := unstructured.NestedFieldNoCopy(object, m.Each.Gauge.Path...)
	if err != nil || !ok {
		t.Fatalf("%s: nothing at %v (%v)", m.Name, m.Each.Gauge.Path, err)
	}
	items, isList := found.([]any)
	if !isList {
		return []string{fmt.Sprintf("%T", found)}
	}
	var types []string
	for _, item := range items {
		for _, path := range m.Each.Gauge.LabelsFromPath {
			if _, ok, err := unstructured.NestedString(item.(map[string]any), path...); err != nil || !ok {
				t.Errorf("%s: no label at %v", m.Name, path)
			}
		}
		value, _, _ := unstructured.NestedString(item.(map[string]any), m.Each.Gauge.ValueFrom...)
		types = append(types, value)
	}
	return types
}
