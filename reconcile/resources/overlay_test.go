package resources_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/resources"
)

// withOverlay merges an overlay, given in YAML, into a cache with everything
// that an overlay could get at.
func withOverlay(t *testing.T, overlay string) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(overlay))
	if err != nil {
		t.Fatal(err)
	}
	cache := storedCache()
	cache.Spec.Config = &v1.ConfigReference{Name: "cfg"}
	cache.Spec.PodTemplate = &runtime.RawExtension{Raw: raw}
	set, err := resources.StatefulSet(cache, "abc")
	if err != nil {
		return nil, err
	}
	return set.Spec.Template, nil
}

// overlayMerges are overlays with what becomes of one part of the template.
var overlayMerges = map[string]struct {
	overlay string
	part    func(*corev1ac.PodTemplateSpecApplyConfiguration) any
	want    string
}{
	"a label is added": {
		"{metadata: {labels: {a: b}}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Labels },
		`{"a":"b","app.kubernetes.io/instance":"c","app.kubernetes.io/name":"clusteredcache"}`,
	},
	"an object is merged": {
		"{spec: {securityContext: {runAsUser: 1000}}}",
		podSecurity,
		`{"runAsUser":1000,"runAsGroup":65532,"runAsNonRoot":true,"fsGroup":65532,"seccompProfile":{"type":"RuntimeDefault"}}`,
	},
	"an object is replaced": {
		"{spec: {securityContext: {$patch: replace, runAsNonRoot: true}}}",
		podSecurity, `{"runAsNonRoot":true}`,
	},
	"an object is deleted": {
		"{spec: {securityContext: {$patch: delete}}}",
		podSecurity, `null`,
	},
	"an object that is not ours is replaced": {
		"{spec: {affinity: {$patch: replace, nodeAffinity: {$patch: replace}}}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Affinity },
		`{"nodeAffinity":{}}`,
	},
	"an object that is not ours is deleted": {
		"{spec: {affinity: {$patch: delete}}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Affinity }, `null`,
	},
	"a probe of another kind": {
		"{spec: {containers: [{name: cache, livenessProbe: {$patch: replace, exec: {command: [x]}}}]}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Containers[0].LivenessProbe },
		`{"exec":{"command":["x"]}}`,
	},
	"a list item is merged, another deleted": {
		"{spec: {topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, $patch: delete}, {topologyKey: topology.kubernetes.io/zone, maxSkew: 2}]}}",
		spread, `[{"maxSkew":2,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway",` +
			`"labelSelector":{"matchLabels":{"app.kubernetes.io/instance":"c","app.kubernetes.io/name":"clusteredcache"}}}]`,
	},
	"a list is replaced": {
		"{spec: {topologySpreadConstraints: [{$patch: replace}, {topologyKey: rack}]}}",
		spread, `[{"topologyKey":"rack"}]`,
	},
	"a list is emptied": {
		"{spec: {topologySpreadConstraints: [{$patch: replace}]}}",
		spread, `[]`,
	},
	"a list item that is not there is deleted": {
		"{spec: {tolerations: [], topologySpreadConstraints: [{$patch: replace}], hostAliases: [{ip: 1.2.3.4, $patch: delete}]}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.HostAliases }, `[]`,
	},
	"directives inside something new": {
		"{spec: {containers: [{name: side, image: i, env: [{$patch: replace}, {name: B, $patch: delete}, {name: A, value: a}]}]}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Containers[1] },
		`{"name":"side","image":"i","env":[{"name":"A","value":"a"}]}`,
	},
	"directives inside a replaced list": {
		"{spec: {volumes: [{$patch: replace}, {name: config, configMap: {$patch: replace, name: x, items: []}}]}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Volumes },
		`[{"name":"config","configMap":{"name":"x"}}]`,
	},
	"of variables of one name the last wins": {
		"{spec: {containers: [{name: cache, env: [{name: A, value: '1'}, {name: B, value: b}, {name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Containers[0].Env },
		`[{"name":"B","value":"b"},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]`,
	},
	"args are replaced": {
		"{spec: {containers: [{name: cache, args: [a]}]}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Containers[0].Args }, `["a"]`,
	},
	"quantities in any spelling": {
		"{spec: {containers: [{name: cache, resources: {limits: {cpu: 0.5, memory: 1Gi}}}]}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.Containers[0].Resources },
		`{"limits":{"cpu":"500m","memory":"1Gi"}}`,
	},
	"large whole numbers stay whole": {
		"{spec: {activeDeadlineSeconds: 9007199254740993}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.ActiveDeadlineSeconds }, `9007199254740993`,
	},
	"a token that stays out": {
		"{spec: {automountServiceAccountToken: false}}",
		func(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.AutomountServiceAccountToken }, `false`,
	},
	"nothing": {
		"{}",
		podSecurity,
		`{"runAsUser":65532,"runAsGroup":65532,"runAsNonRoot":true,"fsGroup":65532,"seccompProfile":{"type":"RuntimeDefault"}}`,
	},
}

func TestOverlayMerges(t *testing.T) {
	for name, c := range overlayMerges {
		t.Run(name, func(t *testing.T) {
			template, err := withOverlay(t, c.overlay)
			if err != nil {
				t.Fatal(err)
			}
			if got := asText(t, c.part(template)); !sameJSON(t, got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func podSecurity(p *corev1ac.PodTemplateSpecApplyConfiguration) any { return p.Spec.SecurityContext }

func spread(p *corev1ac.PodTemplateSpecApplyConfiguration) any {
	return p.Spec.TopologySpreadConstraints
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	canonical := func(text string) string {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return asText(t, value)
	}
	return canonical(a) == canonical(b)
}

func TestOverlayPorts(t *testing.T) {
	for name, c := range map[string]struct{ ports, want string }{
		"none":           {`[]`, `[{"name":"cache","containerPort":8080,"protocol":"TCP"}]`},
		"another":        {`[{containerPort: 9}]`, `[{"name":"cache","containerPort":8080,"protocol":"TCP"},{"containerPort":9,"protocol":"TCP"}]`},
		"UDP as well":    {`[{containerPort: 8080, protocol: UDP, name: u}]`, `[{"name":"cache","containerPort":8080,"protocol":"TCP"},{"name":"u","containerPort":8080,"protocol":"UDP"}]`},
		"both protocols": {`[{containerPort: 9}, {containerPort: 9, protocol: UDP}]`, `[{"name":"cache","containerPort":8080,"protocol":"TCP"},{"containerPort":9,"protocol":"TCP"},{"containerPort":9,"protocol":"UDP"}]`},
		"ours renamed":   {`[{containerPort: 8080, name: http}]`, `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`},
		"ours completed": {`[{containerPort: 8080, hostPort: 80}]`, `[{"name":"cache","hostPort":80,"containerPort":8080,"protocol":"TCP"}]`},
	} {
		template, err := withOverlay(t, "{spec: {containers: [{name: cache, ports: "+c.ports+"}]}}")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := asText(t, template.Spec.Containers[0].Ports); !sameJSON(t, got, c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestOverlayWritesOutProtocolsEverywhere(t *testing.T) {
	template, err := withOverlay(t, `{spec: {
		initContainers: [{name: i, image: i, ports: [{containerPort: 1}]}],
		containers: [{name: side, image: i, ports: [{containerPort: 2}, {containerPort: 2, protocol: UDP}]}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	got := asText(t, template.Spec.InitContainers[0].Ports) + asText(t, template.Spec.Containers[1].Ports)
	want := `[{"containerPort":1,"protocol":"TCP"}][{"containerPort":2,"protocol":"TCP"},{"containerPort":2,"protocol":"UDP"}]`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestOverlayKeepsOurContainerFirst(t *testing.T) {
	template, err := withOverlay(t, "{spec: {containers: [{name: b, image: i}, {name: cache, tty: true}, {name: a, image: i}]}}")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, container := range template.Spec.Containers {
		names = append(names, *container.Name)
	}
	if !slices.Equal(names, []string{"cache", "b", "a"}) {
		t.Errorf("got %v", names)
	}
}
