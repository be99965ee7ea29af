package resources_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/clusteredcache/reconcile/resources"
)

// overlayRefusals are overlays that cannot be merged, with the path of the
// fault and a part of the message.
var overlayRefusals = map[string]struct{ overlay, path, message string }{
	"a list":               {"[]", "", "must be an object"},
	"a string":             {"hello", "", "must be an object"},
	"null":                 {"null", "", "must be an object"},
	"unknown at the top":   {"{foo: 1}", "foo", "no such field"},
	"unknown in the spec":  {"{spec: {foo: 1}}", "spec.foo", "no such field"},
	"unknown in container": {"{spec: {containers: [{name: cache, foo: 1}]}}", "spec.containers[cache].foo", "no such field"},
	"unknown in sidecar":   {"{spec: {containers: [{name: side, image: i, env: [{name: A, valu: b}]}]}}", "spec.containers[side].env[A].valu", "no such field"},
	"wrong capitals":       {"{spec: {Containers: []}}", "spec.Containers", "no such field"},
	"unknown, deep":        {"{spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpression: []}]}}}}}", "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpression", "no such field"},

	"list for object":    {"{spec: []}", "spec", "must be an object"},
	"object for list":    {"{spec: {containers: {name: cache}}}", "spec.containers", "must be a list"},
	"directive for list": {"{spec: {tolerations: {$patch: delete}}}", "spec.tolerations", "must be a list"},
	"string for number":  {"{spec: {terminationGracePeriodSeconds: '30'}}", "spec.terminationGracePeriodSeconds", "whole number"},
	"fraction":           {"{spec: {terminationGracePeriodSeconds: 1.5}}", "spec.terminationGracePeriodSeconds", "whole number"},
	"too large":          {"{spec: {priority: 3000000000}}", "spec.priority", "in range"},
	"number for string":  {"{metadata: {labels: {a: 1}}}", "metadata.labels[a]", "put it in quotes"},
	"string for bool":    {"{spec: {hostNetwork: 'true'}}", "spec.hostNetwork", "true or false"},
	"object for string":  {"{spec: {nodeName: {}}}", "spec.nodeName", "must be a string"},
	"bad quantity":       {"{spec: {containers: [{name: cache, resources: {limits: {cpu: lots}}}]}}", "spec.containers[cache].resources.limits[cpu]", "is not a valid Quantity"},
	"item of wrong type": {"{spec: {containers: [cache]}}", "spec.containers[0]", "must be an object"},

	"null field":         {"{spec: {nodeSelector: null}}", "spec.nodeSelector", "null"},
	"null in a map":      {"{metadata: {labels: {a: null}}}", "metadata.labels[a]", "null"},
	"null in a list":     {"{spec: {tolerations: [null]}}", "spec.tolerations[0]", "null"},
	"null, deep":         {"{spec: {containers: [{name: cache, livenessProbe: {tcpSocket: null}}]}}", "spec.containers[cache].livenessProbe.tcpSocket", "null"},
	"null timestamp":     {"{metadata: {creationTimestamp: null}}", "metadata.creationTimestamp", "null"},
	"null key":           {"{spec: {containers: [{name: null}]}}", "spec.containers[0].name", "null"},
	"null directive":     {"{spec: {containers: [{name: cache, $patch: null}]}}", "spec.containers[cache].$patch", "leave it out"},
	"structured key":     {"{spec: {containers: [{name: []}]}}", "spec.containers[0].name", "must be a string"},
	"container unnamed":  {"{spec: {containers: [{image: i}]}}", "spec.containers[0]", "name is missing"},
	"mount without path": {"{spec: {containers: [{name: cache, volumeMounts: [{name: x}]}]}}", "spec.containers[cache].volumeMounts[0]", "mountPath is missing"},

	"our container deleted":       {"{spec: {containers: [{name: cache, $patch: delete}]}}", "spec.containers[cache]", "leave $patch out"},
	"our container replaced":      {"{spec: {containers: [{name: cache, image: i, $patch: replace}]}}", "spec.containers[cache]", "leave $patch out"},
	"all containers replaced":     {"{spec: {containers: [{$patch: replace}, {name: side, image: i}]}}", "spec.containers[0]", "leave $patch out"},
	"the template replaced":       {"{$patch: replace, spec: {}}", "", "leave $patch out"},
	"the template deleted":        {"{$patch: delete}", "", "leave $patch out"},
	"spec replaced":               {"{spec: {$patch: replace, containers: [{name: cache}]}}", "spec", "leave $patch out"},
	"metadata deleted":            {"{metadata: {$patch: delete}}", "metadata", "leave $patch out"},
	"labels replaced":             {"{metadata: {labels: {$patch: replace, a: b}}}", "metadata.labels", "leave $patch out"},
	"annotations replaced":        {"{metadata: {annotations: {$patch: replace}}}", "metadata.annotations", "leave $patch out"},
	"unknown directive value":     {"{spec: {securityContext: {$patch: merge}}}", "spec.securityContext", "must be replace or delete"},
	"unknown value in a list":     {"{spec: {volumes: [{name: config, $patch: merge}]}}", "spec.volumes[config]", "must be replace or delete"},
	"directive of another kind":   {"{spec: {$setElementOrder/containers: []}}", "spec.$setElementOrder/containers", "leave it out"},
	"retainKeys":                  {"{spec: {volumes: [{name: config, $retainKeys: [name]}]}}", "spec.volumes[config].$retainKeys", "leave it out"},
	"directive in an atomic list": {"{spec: {tolerations: [{$patch: replace}]}}", "spec.tolerations[0]", "replaced as a whole"},
	"replace beside content":      {"{spec: {volumes: [{name: config, emptyDir: {}, $patch: replace}]}}", "spec.volumes[config]", "an item of its own"},
	"delete of nothing named":     {"{spec: {volumes: [{$patch: delete}]}}", "spec.volumes[0]", "name is missing"},

	"selector label changed":      {"{metadata: {labels: {app.kubernetes.io/name: x}}}", "metadata.labels[app.kubernetes.io/name]", "leave it out"},
	"selector label emptied":      {"{metadata: {labels: {app.kubernetes.io/instance: ''}}}", "metadata.labels[app.kubernetes.io/instance]", "leave it out"},
	"config hash changed":         {"{metadata: {annotations: {cache.example.com/config-hash: x}}}", "metadata.annotations[cache.example.com/config-hash]", "leave it out"},
	"restartPolicy":               {"{spec: {restartPolicy: Always}}", "spec.restartPolicy", "leave it out"},
	"token mounted":               {"{spec: {automountServiceAccountToken: true}}", "spec.automountServiceAccountToken", "leave it out"},
	"token projected":             {"{spec: {volumes: [{name: t, projected: {sources: [{configMap: {name: a}}, {serviceAccountToken: {path: t}}]}}]}}", "spec.volumes[t].projected.sources[1].serviceAccountToken", "leave it out"},
	"certificate projected":       {"{spec: {volumes: [{name: t, projected: {sources: [{podCertificate: {signerName: kubernetes.io/kube-apiserver-client-pod, keyType: ED25519, keyPath: k}}]}}]}}", "spec.volumes[t].projected.sources[0].podCertificate", "leave it out"},
	"image":                       {"{spec: {containers: [{name: cache, image: other:1}]}}", "spec.containers[cache].image", "spec.version"},
	"port name taken":             {"{spec: {containers: [{name: cache, ports: [{containerPort: 1, name: cache}]}]}}", "spec.containers[cache].ports", "choose another name"},
	"port name taken by UDP":      {"{spec: {containers: [{name: cache, ports: [{containerPort: 8080, protocol: UDP, name: cache}]}]}}", "spec.containers[cache].ports", "choose another name"},
	"the same container twice":    {"{spec: {containers: [{name: cache}, {name: cache}]}}", "spec.containers[cache]", "twice"},
	"the same volume twice":       {"{spec: {volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}}", "spec.volumes[a]", "twice"},
	"the same port twice":         {"{spec: {containers: [{name: side, image: i, ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]}]}}", "spec.containers[side].ports[1]", "twice"},
	"the same mount twice":        {"{spec: {initContainers: [{name: i, image: i, volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]}]}}", "spec.initContainers[i].volumeMounts[/a]", "twice"},
	"the same spread twice":       {"{spec: {topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}", "spec.topologySpreadConstraints[a]", "twice"},
	"the same claim twice":        {"{spec: {containers: [{name: cache, resources: {claims: [{name: a}, {name: a}]}}]}}", "spec.containers[cache].resources.claims[1]", "twice"},
	"the same finalizer twice":    {"{metadata: {finalizers: [a/b, a/b]}}", "metadata.finalizers[1]", "twice"},
	"the same mount option twice": {"{spec: {containers: [{name: cache, volumeMounts: [{name: a, mountPath: /a, bindMountOptions: [nodev, nodev]}]}]}}", "spec.containers[cache].volumeMounts[/a].bindMountOptions[1]", "twice"},
	"the empty value twice":       {"{metadata: {finalizers: ['', '']}}", "metadata.finalizers[1]", "twice"},
	"the empty name twice":        {"{spec: {volumes: [{name: ''}, {name: ''}]}}", "spec.volumes[]", "twice"},
	"the same pull secret twice":  {"{spec: {imagePullSecrets: [{name: a}, {name: a}]}}", "spec.imagePullSecrets[a]", "twice"},
}

func TestOverlayRefusals(t *testing.T) {
	for name, c := range overlayRefusals {
		t.Run(name, func(t *testing.T) {
			template, err := withOverlay(t, c.overlay)
			var fault *resources.OverlayError
			if !errors.As(err, &fault) {
				t.Fatalf("accepted (%v): %s", err, asText(t, template))
			}
			if fault.Path != c.path || !strings.Contains(fault.Message, c.message) {
				t.Errorf("got  %q: %s\nwant %q: %s", fault.Path, fault.Message, c.path, c.message)
			}
		})
	}
}

func TestOverlayIsNotJSON(t *testing.T) {
	cache := newCache()
	cache.Spec.PodTemplate = &runtime.RawExtension{Raw: []byte("{")}
	if _, err := resources.StatefulSet(cache, ""); err == nil || !strings.Contains(err.Error(), "spec.podTemplate: is not JSON") {
		t.Errorf("got %v", err)
	}
}
