package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
)

// wantOnePass makes one pass, in which nothing may fail, and a second one,
// which must have nothing to write.
func wantOnePass(w *world.World) []model.Outcome {
	w.Helper()
	var outcomes []model.Outcome
	for _, c := range w.Pass().Caches {
		for _, o := range c.Outcomes {
			if o.Err != nil {
				w.Errorf("%s %s: %v", o.Step.Action, o.Step.Target, o.Err)
			}
			outcomes = append(outcomes, o)
		}
	}
	for _, c := range w.Pass().Caches {
		for _, o := range c.Outcomes {
			w.Errorf("the second pass: %s %s: %s %+v", o.Step.Action, o.Step.Target, o.Step.Reason, o.Step.Changes)
		}
	}
	return outcomes
}

// TestClaims: what an apply alone would leave in the way goes all the same, in
// one pass.
func TestClaims(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*world.World){
		"leftovers of client-side apply":     leftoversOfClientSideApply,
		"leftovers after cleared ownership":  leftoversAfterClearedOwnership,
		"switched union members":             switchedUnionMembers,
		"a dry claim that is tried again":    aDryClaimThatIsTriedAgain,
		"our own switch needs no claim":      ourOwnSwitchNeedsNoClaim,
		"duplicate keys in a live list":      duplicateKeysInALiveList,
		"explicit zeros are server defaults": explicitZeros,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(world.Frozen(t))
		})
	}
}

// What kubectl's client-side apply once put into the pod template goes; what it
// put elsewhere, and what others put, stays.
func leftoversOfClientSideApply(w *world.World) {
	w.Cache()
	w.Pass()
	w.PatchJSON(w.StatefulSet(), `[
		{"op":"add","path":"/metadata/labels/team","value":"shop"},
		{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"LEGACY","value":"1"}]},
		{"op":"add","path":"/spec/template/spec/containers/1","value":{"name":"old-sidecar","image":"old"}},
		{"op":"add","path":"/spec/updateStrategy","value":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}]`, "kubectl-client-side-apply")
	w.PatchJSON(w.StatefulSet(), `[
		{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"BY_HAND","value":"1"}}]`, "kubectl-edit")
	outcomes := wantOnePass(w)
	if len(outcomes) != 2 || outcomes[0].Step.Action != model.ActionOwn || len(outcomes[1].Step.Changes) != 2 {
		w.Errorf("outcomes: %+v", outcomes)
	}
	sts := w.StatefulSet()
	containers := sts.Spec.Template.Spec.Containers
	if len(containers) != 1 || len(containers[0].Env) != 1 || containers[0].Env[0].Name != "BY_HAND" {
		w.Errorf("containers: %+v", containers)
	}
	if sts.Labels["team"] != "shop" || *sts.Spec.UpdateStrategy.RollingUpdate.Partition != 2 {
		w.Errorf("theirs is gone: %v, %+v", sts.Labels, sts.Spec.UpdateStrategy)
	}
}

// Cleared managedFields credit everything to before-first-apply. What we wrote
// and no longer want goes all the same, in the same pass, whether
// it was found before or after the first apply.
func leftoversAfterClearedOwnership(w *world.World) {
	for name, passBetween := range map[string]bool{"at once": false, "after an apply": true} {
		w.Sub(name, func(w *world.World) {
			w.Create(&corev1.ConfigMap{ObjectMeta: w.Meta("cfg"), Data: map[string]string{"a": "b"}})
			w.Cache(`spec: {config: {name: cfg}}`)
			w.Pass()
			if n := len(w.StatefulSet().Spec.Template.Spec.Volumes); n == 0 {
				w.Fatal("the ConfigMap is not mounted")
			}
			w.Patch(w.StatefulSet(), `{"metadata":{"managedFields":[{}]}}`)
			if passBetween {
				// An apply of an older release, which did not look for leftovers.
				w.Apply(w.StatefulSet(), `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"cache"},"spec":{"replicas":3}}`, v1.FieldManager, client.ForceOwnership)
			}
			w.Edit(`spec: {config: null}`)
			wantOnePass(w)
			template := w.StatefulSet().Spec.Template
			if len(template.Spec.Volumes) != 0 || len(template.Spec.Containers[0].VolumeMounts) != 0 || template.Annotations[v1.ConfigHashAnnotation] != "" {
				w.Errorf("left: %+v", template)
			}
		})
	}
}

// A member of a union that somebody else set, instead of ours, is refused
// beside ours: probe handlers, volume sources, values of
// variables, what a disruption budget asks for.
func switchedUnionMembers(w *world.World) {
	w.Cache(`{spec: {podTemplate: {"spec":{
        "volumes":[{"name":"scratch","emptyDir":{"medium":"Memory"}}],
        "containers":[{"name":"cache","env":[{"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}],
            "lifecycle":{"preStop":{"sleep":{"seconds":2}}}}]}}}}`)
	w.Pass()
	before := w.StatefulSet()
	probe := before.Spec.Template.Spec.Containers[0].ReadinessProbe
	if probe == nil || probe.TCPSocket == nil {
		w.Fatalf("readiness probe: %+v", probe)
	}
	w.PatchJSON(before.DeepCopy(), `[
		{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["true"]}}},
		{"op":"replace","path":"/spec/template/spec/containers/0/lifecycle/preStop","value":{"exec":{"command":["true"]}}},
		{"op":"replace","path":"/spec/template/spec/containers/0/env/0","value":{"name":"NODE","value":"x"}},
		{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"scratch","hostPath":{"path":"/tmp"}}}]`, "somebody")
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: w.Meta("cache")}
	w.PatchJSON(pdb, `[{"op":"remove","path":"/spec/maxUnavailable"},{"op":"add","path":"/spec/minAvailable","value":3}]`, "somebody")
	wantOnePass(w)
	after := w.StatefulSet()
	if d := cmp.Diff(before.Spec.Template.Spec, after.Spec.Template.Spec); d != "" {
		w.Errorf("not as before:\n%s", d)
	}
	if pdb = w.Budget(); pdb.Spec.MinAvailable != nil || pdb.Spec.MaxUnavailable.IntValue() != 1 {
		w.Errorf("%+v", pdb.Spec)
	}
}

// While a diff tries a claim, the StatefulSet controller writes the status. The
// claim is tried again, and what needs it is estimated all the same.
func aDryClaimThatIsTriedAgain(w *world.World) {
	w.Cache()
	w.Pass()
	w.PatchJSON(w.StatefulSet(), `[
		{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["true"]}}}]`, "somebody")
	writes := 0
	c := w.Product(func(_ int, r *http.Request) {
		if r.Method != http.MethodPatch {
			return
		}
		if writes++; writes == 1 {
			w.PatchStatus(w.StatefulSet(), `{"observedGeneration":2,"replicas":1}`)
		}
	})
	f := w.Run(client.NewDryRunClient(c), reconcile.Options{Concurrency: 1, Estimate: kube.CouldNotTry})
	outcomes := f.Cache().Outcomes
	if writes != 2 || len(outcomes) != 2 || outcomes[0].Result != model.Configured || outcomes[1].Result != model.Estimated {
		w.Errorf("%d writes, outcomes: %+v", writes, outcomes)
	}
}

// A user who changes a port, or from one probe to another, changes what is ours
// alone: no claim is needed.
func ourOwnSwitchNeedsNoClaim(w *world.World) {
	w.Cache()
	w.Pass()
	w.Edit(`spec: {port: 11311, podTemplate: {spec: {containers: [{name: cache, readinessProbe: {$patch: replace, exec: {command: ["true"]}}}]}}}`)
	for _, o := range wantOnePass(w) {
		if o.Step.Action == model.ActionOwn {
			w.Errorf("claimed: %s %s", o.Step.Target, o.Step.Reason)
		}
	}
}

// One port number under two protocols: ours is found by number and protocol,
// the other stays.
func TestAPortOfAnotherProtocolStays(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	s := &corev1.Service{ObjectMeta: w.Meta("cache")}
	w.PatchJSON(s, `[{"op":"add","path":"/spec/ports/-","value":{"name":"udp","port":11211,"protocol":"UDP"}}]`, "user")
	w.NothingToDo()
	w.PatchJSON(s, `[{"op":"replace","path":"/spec/ports/0/name","value":"renamed"}]`, "user")
	w.Pass()
	w.NothingToDo()
	ports := w.ClientService().Spec.Ports
	if len(ports) != 2 || ports[0].Name == "renamed" || ports[1].Protocol != corev1.ProtocolUDP {
		t.Errorf("ports: %+v", ports)
	}
}

// A name that a live list has twice is either repaired or a failure of this one
// cache, said with what is there twice; others go on.
func duplicateKeysInALiveList(w *world.World) {
	w.Cache(`{spec: {podTemplate: {"spec":{"containers":[{"name":"cache","env":[{"name":"A","value":"1"}]}]}}}}`)
	w.Pass()
	w.Named("other").Cache()
	w.PatchJSON(w.StatefulSet(), `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"A","value":"2"}}]`, "somebody")
	if n := len(w.StatefulSet().Spec.Template.Spec.Containers[0].Env); n != 2 {
		w.Fatalf("%d variables", n)
	}
	f := w.Pass()
	f.Of("other").WantsState(model.Progressing)
	envs := w.StatefulSet().Spec.Template.Spec.Containers[0].Env
	if len(envs) != 1 || envs[0].Value != "1" {
		w.Errorf("variables %+v, %+v", envs, f.Verdict())
	}
}

// An explicit zero that means "the default" is no drift, and no request; a
// default that somebody changed is repaired.
func explicitZeros(w *world.World) {
	w.Cache(`{spec: {podTemplate: {"spec":{
        "terminationGracePeriodSeconds":0,"dnsPolicy":"",
        "containers":[{"name":"cache","terminationMessagePath":"","livenessProbe":{"timeoutSeconds":0,"periodSeconds":0,"failureThreshold":0,"initialDelaySeconds":0}}]}}}}`)
	w.Pass()
	for _, o := range wantOnePass(w) {
		w.Errorf("%s %s: %+v", o.Step.Action, o.Step.Target, o.Step.Changes)
	}
	w.PatchJSON(w.StatefulSet(), `[{"op":"replace","path":"/spec/template/spec/containers/0/livenessProbe/timeoutSeconds","value":7},
		{"op":"replace","path":"/spec/template/spec/terminationGracePeriodSeconds","value":30}]`, "somebody")
	wantOnePass(w)
	spec := w.StatefulSet().Spec.Template.Spec
	if *spec.TerminationGracePeriodSeconds != 0 || spec.Containers[0].LivenessProbe.TimeoutSeconds != 1 {
		w.Errorf("not repaired: %d, %+v", *spec.TerminationGracePeriodSeconds, spec.Containers[0].LivenessProbe)
	}
}
