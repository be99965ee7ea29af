package stories_test

import (
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// jsonPatch changes an object the way kubectl patch --type=json does.
func jsonPatch(t *testing.T, env *testenv.Env, o client.Object, operations, manager string) {
	t.Helper()
	if err := env.Client.Patch(t.Context(), o, client.RawPatch("application/json-patch+json", []byte(operations)), client.FieldOwner(manager)); err != nil {
		t.Fatal(err)
	}
}

// wantOnePass makes one pass, in which nothing may fail, and a second one,
// which must have nothing to write.
func wantOnePass(t *testing.T, env *testenv.Env, ns string) []model.Outcome {
	t.Helper()
	var outcomes []model.Outcome
	for _, c := range passOn(t, env, ns).Caches {
		for _, o := range c.Outcomes {
			if o.Err != nil {
				t.Errorf("%s %s: %v", o.Step.Action, o.Step.Target, o.Err)
			}
			outcomes = append(outcomes, o)
		}
	}
	for _, c := range passOn(t, env, ns).Caches {
		for _, o := range c.Outcomes {
			t.Errorf("the second pass: %s %s: %s %+v", o.Step.Action, o.Step.Target, o.Step.Reason, o.Step.Changes)
		}
	}
	return outcomes
}

func frozenCache(t *testing.T, env *testenv.Env, spec v1.ClusteredCacheSpec) (string, *v1.ClusteredCache) {
	t.Helper()
	ns := env.Namespace(t)
	c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: spec}
	if err := env.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	passOn(t, env, ns)
	return ns, c
}

func setOf(t *testing.T, env *testenv.Env, ns string) *appsv1.StatefulSet {
	t.Helper()
	sts := &appsv1.StatefulSet{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "cache"}, sts); err != nil {
		t.Fatal(err)
	}
	return sts
}

// TestClaims: what an apply alone would leave in the way goes all the same, in
// one pass. The tests share an API server without controllers.
func TestClaims(t *testing.T) {
	env := frozen(t)
	for name, test := range map[string]func(*testing.T, *testenv.Env){
		"leftovers of client-side apply":     leftoversOfClientSideApply,
		"leftovers after cleared ownership":  leftoversAfterClearedOwnership,
		"switched union members":             switchedUnionMembers,
		"a dry claim that is tried again":    aDryClaimThatIsTriedAgain,
		"our own switch needs no claim":      ourOwnSwitchNeedsNoClaim,
		"duplicate keys in a live list":      duplicateKeysInALiveList,
		"explicit zeros are server defaults": explicitZeros,
	} {
		t.Run(name, func(t *testing.T) { test(t, env) })
	}
}

// What kubectl's client-side apply once put into the pod template goes; what it
// put elsewhere, and what others put, stays.
func leftoversOfClientSideApply(t *testing.T, env *testenv.Env) {
	ns, _ := frozenCache(t, env, v1.ClusteredCacheSpec{Version: "1", Size: 3})
	jsonPatch(t, env, setOf(t, env, ns), `[
		{"op":"add","path":"/metadata/labels/team","value":"shop"},
		{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"LEGACY","value":"1"}]},
		{"op":"add","path":"/spec/template/spec/containers/1","value":{"name":"old-sidecar","image":"old"}},
		{"op":"add","path":"/spec/updateStrategy","value":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}]`, "kubectl-client-side-apply")
	jsonPatch(t, env, setOf(t, env, ns), `[
		{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"BY_HAND","value":"1"}}]`, "kubectl-edit")
	outcomes := wantOnePass(t, env, ns)
	if len(outcomes) != 2 || outcomes[0].Step.Action != model.ActionOwn || len(outcomes[1].Step.Changes) != 2 {
		t.Errorf("outcomes: %+v", outcomes)
	}
	sts := setOf(t, env, ns)
	containers := sts.Spec.Template.Spec.Containers
	if len(containers) != 1 || len(containers[0].Env) != 1 || containers[0].Env[0].Name != "BY_HAND" {
		t.Errorf("containers: %+v", containers)
	}
	if sts.Labels["team"] != "shop" || *sts.Spec.UpdateStrategy.RollingUpdate.Partition != 2 {
		t.Errorf("theirs is gone: %v, %+v", sts.Labels, sts.Spec.UpdateStrategy)
	}
}

// Cleared managedFields credit everything to before-first-apply. What we wrote
// and no longer want goes all the same, in the same pass, whether
// it was found before or after the first apply.
func leftoversAfterClearedOwnership(t *testing.T, env *testenv.Env) {
	config := &v1.ConfigReference{Name: "cfg"}
	for name, passBetween := range map[string]bool{"at once": false, "after an apply": true} {
		t.Run(name, func(t *testing.T) {
			ns := env.Namespace(t)
			c := &v1.ClusteredCache{ObjectMeta: meta(ns, "cache"), Spec: v1.ClusteredCacheSpec{Version: "1", Size: 3, Config: config}}
			for _, o := range []client.Object{c, &corev1.ConfigMap{ObjectMeta: meta(ns, "cfg"), Data: map[string]string{"a": "b"}}} {
				if err := env.Client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			passOn(t, env, ns)
			if n := len(setOf(t, env, ns).Spec.Template.Spec.Volumes); n == 0 {
				t.Fatal("the ConfigMap is not mounted")
			}
			err := env.Client.Patch(t.Context(), setOf(t, env, ns), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"managedFields":[{}]}}`)))
			if err != nil {
				t.Fatal(err)
			}
			if passBetween {
				// An apply of an older release, which did not look for leftovers.
				err := env.Client.Patch(t.Context(), setOf(t, env, ns), client.RawPatch("application/apply-patch+yaml",
					[]byte(`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"cache"},"spec":{"replicas":3}}`)), client.FieldOwner(v1.FieldManager), client.ForceOwnership)
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := env.Client.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"config":null}}`))); err != nil {
				t.Fatal(err)
			}
			wantOnePass(t, env, ns)
			template := setOf(t, env, ns).Spec.Template
			if len(template.Spec.Volumes) != 0 || len(template.Spec.Containers[0].VolumeMounts) != 0 || template.Annotations[v1.ConfigHashAnnotation] != "" {
				t.Errorf("left: %+v", template)
			}
		})
	}
}

// A member of a union that somebody else set, instead of ours, is refused
// beside ours: probe handlers, volume sources, values of
// variables, what a disruption budget asks for.
func switchedUnionMembers(t *testing.T, env *testenv.Env) {
	ns, _ := frozenCache(t, env, v1.ClusteredCacheSpec{Version: "1", Size: 3, PodTemplate: raw(`{"spec":{
		"volumes":[{"name":"scratch","emptyDir":{"medium":"Memory"}}],
		"containers":[{"name":"cache","env":[{"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}],
			"lifecycle":{"preStop":{"sleep":{"seconds":2}}}}]}}`)})
	before := setOf(t, env, ns)
	probe := before.Spec.Template.Spec.Containers[0].ReadinessProbe
	if probe == nil || probe.TCPSocket == nil {
		t.Fatalf("readiness probe: %+v", probe)
	}
	jsonPatch(t, env, before.DeepCopy(), `[
		{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["true"]}}},
		{"op":"replace","path":"/spec/template/spec/containers/0/lifecycle/preStop","value":{"exec":{"command":["true"]}}},
		{"op":"replace","path":"/spec/template/spec/containers/0/env/0","value":{"name":"NODE","value":"x"}},
		{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"scratch","hostPath":{"path":"/tmp"}}}]`, "somebody")
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: meta(ns, "cache")}
	jsonPatch(t, env, pdb, `[{"op":"remove","path":"/spec/maxUnavailable"},{"op":"add","path":"/spec/minAvailable","value":3}]`, "somebody")
	wantOnePass(t, env, ns)
	after := setOf(t, env, ns)
	if d := cmpDiff(before.Spec.Template.Spec, after.Spec.Template.Spec); d != "" {
		t.Errorf("not as before:\n%s", d)
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(pdb), pdb); err != nil || pdb.Spec.MinAvailable != nil || pdb.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%v, %+v", err, pdb.Spec)
	}
}

// While a diff tries a claim, the StatefulSet controller writes the status. The
// claim is tried again, and what needs it is estimated all the same.
func aDryClaimThatIsTriedAgain(t *testing.T, env *testenv.Env) {
	ns, _ := frozenCache(t, env, v1.ClusteredCacheSpec{Version: "1", Size: 3})
	jsonPatch(t, env, setOf(t, env, ns), `[
		{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["true"]}}}]`, "somebody")
	writes := 0
	c := clientOf(t, env, func(_ int, r *http.Request) {
		if r.Method != http.MethodPatch {
			return
		}
		if writes++; writes == 1 {
			setStatus(t, env, setOf(t, env, ns), `{"observedGeneration":2,"replicas":1}`)
		}
	})
	f := runWith(t, client.NewDryRunClient(c), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Estimate: kube.CouldNotTry})
	outcomes := reportOf(f, "cache").Outcomes
	if writes != 2 || len(outcomes) != 2 || outcomes[0].Result != model.Configured || outcomes[1].Result != model.Estimated {
		t.Errorf("%d writes, outcomes: %+v", writes, outcomes)
	}
}

// A user who changes a port, or from one probe to another, changes what is ours
// alone: no claim is needed.
func ourOwnSwitchNeedsNoClaim(t *testing.T, env *testenv.Env) {
	ns, c := frozenCache(t, env, v1.ClusteredCacheSpec{Version: "1", Size: 3})
	merge := `{"spec":{"port":11311,"podTemplate":{"spec":{"containers":[{"name":"cache","readinessProbe":{"$patch":"replace","exec":{"command":["true"]}}}]}}}}`
	if err := env.Client.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		t.Fatal(err)
	}
	for _, o := range wantOnePass(t, env, ns) {
		if o.Step.Action == model.ActionOwn {
			t.Errorf("claimed: %s %s", o.Step.Target, o.Step.Reason)
		}
	}
}

// One port number under two protocols: ours is found by number and protocol,
// the other stays.
func TestAPortOfAnotherProtocolStays(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache")
	settle(t, ns)
	s := &corev1.Service{ObjectMeta: meta(ns, "cache")}
	jsonPatch(t, env, s, `[{"op":"add","path":"/spec/ports/-","value":{"name":"udp","port":11211,"protocol":"UDP"}}]`, "user")
	wantNothingToDo(t, ns)
	jsonPatch(t, env, s, `[{"op":"replace","path":"/spec/ports/0/name","value":"renamed"}]`, "user")
	pass(t, ns)
	wantNothingToDo(t, ns)
	ports := get(t, ns, "cache", &corev1.Service{}).Spec.Ports
	if len(ports) != 2 || ports[0].Name == "renamed" || ports[1].Protocol != corev1.ProtocolUDP {
		t.Errorf("ports: %+v", ports)
	}
}

// A name that a live list has twice is either repaired or a failure of this one
// cache, said with what is there twice; others go on.
func duplicateKeysInALiveList(t *testing.T, env *testenv.Env) {
	ns, _ := frozenCache(t, env, v1.ClusteredCacheSpec{Version: "1", Size: 3, PodTemplate: raw(`{"spec":{"containers":[{"name":"cache","env":[{"name":"A","value":"1"}]}]}}`)})
	if err := env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: meta(ns, "other"), Spec: v1.ClusteredCacheSpec{Version: "1"}}); err != nil {
		t.Fatal(err)
	}
	jsonPatch(t, env, setOf(t, env, ns), `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"A","value":"2"}}]`, "somebody")
	if n := len(setOf(t, env, ns).Spec.Template.Spec.Containers[0].Env); n != 2 {
		t.Fatalf("%d variables", n)
	}
	f := runWith(t, clientOf(t, env, nil), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 2})
	if v := verdict(t, f, "other"); v.State != model.Progressing {
		t.Errorf("other: %+v", v)
	}
	envs := setOf(t, env, ns).Spec.Template.Spec.Containers[0].Env
	if len(envs) != 1 || envs[0].Value != "1" {
		t.Errorf("variables %+v, %+v", envs, verdict(t, f, "cache"))
	}
}

// An explicit zero that means "the default" is no drift, and no request; a
// default that somebody changed is repaired.
func explicitZeros(t *testing.T, env *testenv.Env) {
	ns, _ := frozenCache(t, env, v1.ClusteredCacheSpec{Version: "1", Size: 3, PodTemplate: raw(`{"spec":{
		"terminationGracePeriodSeconds":0,"dnsPolicy":"",
		"containers":[{"name":"cache","terminationMessagePath":"","livenessProbe":{"timeoutSeconds":0,"periodSeconds":0,"failureThreshold":0,"initialDelaySeconds":0}}]}}`)})
	for _, o := range wantOnePass(t, env, ns) {
		t.Errorf("%s %s: %+v", o.Step.Action, o.Step.Target, o.Step.Changes)
	}
	jsonPatch(t, env, setOf(t, env, ns), `[{"op":"replace","path":"/spec/template/spec/containers/0/livenessProbe/timeoutSeconds","value":7},
		{"op":"replace","path":"/spec/template/spec/terminationGracePeriodSeconds","value":30}]`, "somebody")
	wantOnePass(t, env, ns)
	spec := setOf(t, env, ns).Spec.Template.Spec
	if *spec.TerminationGracePeriodSeconds != 0 || spec.Containers[0].LivenessProbe.TimeoutSeconds != 1 {
		t.Errorf("not repaired: %d, %+v", *spec.TerminationGracePeriodSeconds, spec.Containers[0].LivenessProbe)
	}
}
