package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
)

// Ordinary configurations whose stored form is not what was sent: defaults
// inside lists and atomic values, quantities in other words, zeros and empty
// values that a typed object does not tell from absent ones.
var ordinary = []string{
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"A","value":""}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"A"}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"B","value":"2"},{"name":"A","value":"1"}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"MEM","valueFrom":{"resourceFieldRef":{"resource":"limits.memory"}}}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"MEM","valueFrom":{"resourceFieldRef":{"containerName":"cache","resource":"limits.memory","divisor":"1Mi"}}}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"K","valueFrom":{"configMapKeyRef":{"name":"cm","key":"k","optional":true}}}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","env":[{"name":"A&B<C>","value":"x"}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","envFrom":[{"configMapRef":{"name":"cm"}},{"prefix":"P_","secretRef":{"name":"s","optional":false}}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","resources":{"requests":{"cpu":"1000m","memory":"1024Mi"},"limits":{"memory":"1Gi"}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","resources":{"requests":{"cpu":"0.5"}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","resources":{"requests":{"cpu":1,"memory":1000000}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","resources":{"limits":{"cpu":"2e0","memory":"1G"}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","resources":{"requests":{"ephemeral-storage":"0"}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","livenessProbe":{"initialDelaySeconds":0,"periodSeconds":7}}]}}`,
	`{"spec":{"containers":[{"name":"cache","readinessProbe":{"$patch":"replace","exec":{"command":["true"]}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","readinessProbe":{"$patch":"replace","httpGet":{"port":8080}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","readinessProbe":{"$patch":"replace","httpGet":{"port":"http","path":"/x","httpHeaders":[{"name":"A","value":""}]}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","readinessProbe":{"$patch":"replace","grpc":{"port":9000}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","startupProbe":{"tcpSocket":{"port":11211}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","lifecycle":{"preStop":{"sleep":{"seconds":5}}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","lifecycle":{"preStop":{"exec":{"command":["sh","-c","sleep 5"]}}}}]}}`,
	`{"spec":{"containers":[{"name":"cache","terminationMessagePath":"/tmp/x","terminationMessagePolicy":"FallbackToLogsOnError"}]}}`,
	`{"spec":{"containers":[{"name":"cache","imagePullPolicy":"Always","workingDir":"/","stdin":false,"tty":true}]}}`,
	`{"spec":{"containers":[{"name":"cache","command":["memcached"],"args":[""]}]}}`,
	`{"spec":{"containers":[{"name":"cache","securityContext":{"runAsUser":0,"runAsNonRoot":false}}]}}`,
	`{"spec":{"containers":[{"name":"cache","securityContext":{"capabilities":{"add":["NET_BIND_SERVICE"]},"procMount":"Default"}}]}}`,
	`{"spec":{"containers":[{"name":"cache","ports":[{"containerPort":9150}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","ports":[{"name":"dns","containerPort":53,"protocol":"UDP"},{"name":"dns-tcp","containerPort":53,"protocol":"TCP"}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","ports":[{"containerPort":9150,"hostPort":0,"hostIP":""}]}]}}`,
	`{"spec":{"containers":[{"name":"cache","ports":[{"containerPort":9,"protocol":""}]}]}}`,
	`{"spec":{"containers":[{"name":"side","image":"x"}]}}`,
	`{"spec":{"containers":[{"name":"side","image":"x","ports":[{"containerPort":9150,"name":"metrics"}]},{"name":"another","image":"y:latest"}]}}`,
	`{"spec":{"initContainers":[{"name":"first","image":"x"},{"name":"second","image":"y","restartPolicy":"Always"}]}}`,
	`{"spec":{"initContainers":[{"name":"first","image":"x","resources":{"limits":{"cpu":"100m"}}}]}}`,
	`{"spec":{"volumes":[{"name":"scratch","emptyDir":{}}],"containers":[{"name":"cache","volumeMounts":[{"name":"scratch","mountPath":"/tmp"}]}]}}`,
	`{"spec":{"volumes":[{"name":"scratch","emptyDir":{"medium":"Memory","sizeLimit":"64Mi"}}]}}`,
	`{"spec":{"volumes":[{"name":"p","projected":{"sources":[{"configMap":{"name":"a"}},{"secret":{"name":"b","items":[{"key":"k","path":"p"}]}},{"downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}]}}]}}`,
	`{"spec":{"volumes":[{"name":"c","configMap":{"name":"a","defaultMode":256,"items":[{"key":"k","path":"p","mode":0}]}}]}}`,
	`{"spec":{"volumes":[{"name":"s","secret":{"secretName":"a","optional":true}}]}}`,
	`{"spec":{"volumes":[{"name":"d","downwardAPI":{"items":[{"path":"cpu","resourceFieldRef":{"containerName":"cache","resource":"limits.cpu"}}]}}]}}`,
	`{"spec":{"volumes":[{"name":"e","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1024Mi"}}}}}}]}}`,
	`{"spec":{"volumes":[{"name":"h","hostPath":{"path":"/var/x"}}]}}`,
	`{"spec":{"volumes":[{"name":"n","nfs":{"server":"s","path":"/p"}}]}}`,
	`{"spec":{"volumes":[{"name":"i","csi":{"driver":"d.example.com","volumeAttributes":{"a":""}}}]}}`,
	`{"spec":{"tolerations":[{"operator":"Exists"}]}}`,
	`{"spec":{"tolerations":[{"key":"a","value":"b","effect":"NoExecute","tolerationSeconds":0}]}}`,
	`{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"a":"b"}}}]}}}}`,
	`{"spec":{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]}}}}`,
	`{"spec":{"nodeSelector":{"disk":"ssd","empty":""}}}`,
	`{"spec":{"hostAliases":[{"ip":"10.0.0.2","hostnames":["b","a"]},{"ip":"10.0.0.1"}]}}`,
	`{"spec":{"dnsPolicy":"None","dnsConfig":{"nameservers":["10.0.0.1"],"options":[{"name":"ndots","value":"2"},{"name":"edns0"}]}}}`,
	`{"spec":{"imagePullSecrets":[{"name":"b"},{"name":"a"}]}}`,
	`{"spec":{"priorityClassName":"","schedulerName":"default-scheduler"}}`,
	`{"spec":{"terminationGracePeriodSeconds":0}}`,
	`{"spec":{"hostNetwork":false,"hostPID":false,"shareProcessNamespace":true}}`,
	`{"spec":{"securityContext":{"fsGroup":0,"sysctls":[{"name":"net.ipv4.ip_unprivileged_port_start","value":"0"}],"supplementalGroups":[2,1]}}}`,
	`{"spec":{"securityContext":{"fsGroupChangePolicy":"OnRootMismatch","seccompProfile":{"type":"Unconfined"}}}}`,
	`{"spec":{"topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"rack","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"a":"b"}}}]}}`,
	`{"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule","nodeTaintsPolicy":"Honor","matchLabelKeys":["controller-revision-hash"]}]}}`,
	`{"spec":{"readinessGates":[{"conditionType":"example.com/ready"}]}}`,
	`{"spec":{"overhead":{},"runtimeClassName":"gvisor"}}`,
	`{"spec":{"os":{"name":"linux"},"setHostnameAsFQDN":false,"enableServiceLinks":true}}`,
	`{"spec":{"containers":[{"name":"cache","resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]}]}}`,
	`{"metadata":{"annotations":{"a/b":"","sidecar.istio.io/inject":"true"},"labels":{"team":"x"}}}`,
}

// No false drift: what we applied is recognised as what we would apply. A
// second pass has nothing to say and asks for nothing but lists.
func TestOrdinaryConfigurationsAreNotDrift(t *testing.T) {
	t.Parallel()
	w := world.Frozen(t)
	add := func(name string, spec v1.ClusteredCacheSpec) {
		spec.Version, spec.Size = "1.6.38", 2
		if err := w.Env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: w.Meta(name), Spec: spec}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for i, overlay := range ordinary {
		add(fmt.Sprintf("overlay-%02d", i), v1.ClusteredCacheSpec{PodTemplate: &runtime.RawExtension{Raw: []byte(overlay)}})
	}
	for i, q := range []string{"1Gi", "1024Mi", "1073741824", "0.5Gi", "1e9"} {
		add(fmt.Sprintf("storage-%d", i), v1.ClusteredCacheSpec{Engine: v1.EngineCustom, Image: "example.com/cache",
			Storage:   &v1.StorageSpec{Size: resource.MustParse(q), StorageClassName: new("fast"), Retain: v1.RetainPolicyDelete},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse(q)}},
		})
	}
	for _, c := range w.Pass().Caches {
		for _, h := range c.Plan.Holds {
			t.Errorf("%s %s: %s", c.Name, specOf(c.Name), h.Message)
		}
		for _, o := range c.Outcomes {
			if o.Err != nil {
				t.Errorf("%s %s: %v", c.Name, specOf(c.Name), o.Err)
			}
		}
	}
	var asked []string
	c := w.Product(func(_ int, r *http.Request) {
		// Nobody makes pods here, so that the caches never settle and passes look for them.
		if !strings.HasSuffix(r.URL.Path, "/pods") {
			asked = append(asked, r.Method+" "+r.URL.String())
		}
	})
	f := w.Run(c, reconcile.Options{Concurrency: 1})
	for _, c := range f.Caches {
		for _, o := range c.Outcomes {
			t.Errorf("%s %s: %s %+v %s", c.Name, specOf(c.Name), o.Result, o.Step.Changes, o.Warning)
		}
	}
	if len(asked) != 5 {
		t.Errorf("%d requests, want 5 lists:\n%s", len(asked), strings.Join(asked, "\n"))
	}
}

func specOf(name string) string {
	var i int
	if _, err := fmt.Sscanf(name, "overlay-%d", &i); err != nil {
		return ""
	}
	return ordinary[i]
}
