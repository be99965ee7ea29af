package report

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/internal/golden"
	"example.com/clusteredcache/reconcile/model"
)

// intent is a StatefulSet with a secret in its environment.
func intent(name string) *appsv1ac.StatefulSetApplyConfiguration {
	return appsv1ac.StatefulSet(name, "shop").
		WithAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "note": "two\nlines `and` \u202e"}).
		WithSpec(appsv1ac.StatefulSetSpec().WithReplicas(3).WithTemplate(corev1ac.PodTemplateSpec().WithSpec(
			corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("cache").WithImage("memcached:1").
				WithEnv(corev1ac.EnvVar().WithName("PASSWORD").WithValue("hunter2"),
					corev1ac.EnvVar().WithName("REF").WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(
						corev1ac.SecretKeySelector().WithName("s").WithKey("k"))))))))
}

// bumped is a stored cache whose version a manifest raises.
func bumped() model.CacheReport {
	s := step(model.ActionChange, "StatefulSet", "cache", "spec.template.spec.containers[cache].image differs",
		fields.Change{Path: "spec.template.spec.containers[cache].image", From: `"docker.io/library/memcached:1.6.38"`, To: `"docker.io/library/memcached:1.6.39"`})
	s.Restarts = 3
	r := done("cache", model.Verdict{State: model.Progressing, Reason: "NotObserved", Message: "the StatefulSet controller has yet to see the change"},
		[]model.Step{s}, model.Configured)
	r.Plan.Steps[0].Effects = []string{"upgrade from 1.6.38 to 1.6.39", "3 nodes restart, one at a time, in this order: cache-2, cache-1, cache-0"}
	r.Edit = &model.Edit{Changes: []fields.Change{
		{Path: "metadata.labels.team", From: `"web"`, By: []fields.Manager{{Name: "kubectl-label", Operation: "Update", Time: someTime}}},
		{Path: "spec.version", From: `"1.6.38"`, To: `"1.6.39"`, By: []fields.Manager{argo}},
	}}
	return r
}

// onPaper is a cache that only a manifest has, in a namespace that is not there.
func onPaper() model.CacheReport {
	create := step(model.ActionCreate, "StatefulSet", "new", "missing")
	create.Intent = intent("new")
	late := step(model.ActionCreate, "PodDisruptionBudget", "new", "missing")
	late.After = "the cache is created"
	r := done("new", model.Verdict{State: model.Progressing, Reason: "Pending", Message: "nothing is there yet"},
		[]model.Step{step(model.ActionChange, "ClusteredCache", "new", "finalizer"), create, late}, model.Estimated, model.Estimated)
	r.Outcomes[0].Estimate, r.Outcomes[1].Estimate = "when the cache is created", "namespace shop does not exist"
	r.Edit = &model.Edit{New: true, Estimate: "namespace shop does not exist"}
	r.Plan.Holds = []model.Hold{{Gate: "config", Target: ref("StatefulSet", "new"), Class: model.Waiting, Reason: "ConfigMapNotFound", Message: "ConfigMap shop/conf does not exist"}}
	return r
}

// adopted is an object that is taken from a former cache: two steps, one change.
func adopted() model.CacheReport {
	return done("old", model.Verdict{State: model.Settled, Reason: "Ready"}, []model.Step{
		step(model.ActionOwn, "Service", "old", "taken over from a former cache of this name"),
		step(model.ActionChange, "Service", "old", "metadata.ownerReferences differs"),
	}, model.Configured, model.Configured)
}

// kept is a cache of which the server changes nothing, whatever was planned.
func kept() model.CacheReport {
	r := warned()
	r.Plan.Steps[0].Restarts = 3
	r.Outcomes[0].Step.Restarts = 3
	r.Outcomes[0].Step.Changes = []fields.Change{{Path: "spec.replicas", From: "3", To: "5"}}
	r.Plan.Steps[0].Effects = []string{"3 nodes restart"}
	return r
}

// injected tries to break out of whatever stands around it.
func injected() model.CacheReport {
	const evil = "x` ``` ````\n```\n</details><img src=x onerror=alert(1)> | @octocat #1 https://evil.example [a](b) **b** _i_ \x1b[2J\u202e"
	r := done("i", model.Verdict{State: model.Stalled, Reason: "R|" + evil, Message: evil}, []model.Step{
		step(model.ActionChange, "StatefulSet", evil, evil, fields.Change{Path: evil, From: `"` + evil + `"`, To: `"@here"`,
			By: []fields.Manager{{Name: evil, Operation: "Update"}}}),
		step(model.ActionCreate, "Service", "i", evil),
	}, model.Configured, model.Estimated)
	r.Outcomes[0].Warning, r.Outcomes[1].Estimate = evil, evil
	r.Plan.Steps[0].Effects = []string{evil}
	r.Plan.Holds = []model.Hold{{Reason: evil, Class: "blocked", Target: ref("Service", evil), Message: evil}}
	r.Edit = &model.Edit{Changes: []fields.Change{{Path: evil, To: `"` + evil + `"`}}}
	return r
}

// shared is a live StatefulSet on which we own the value of OURS and SHARED, and
// kubectl that of SHARED and THEIRS.
func shared() fields.Object {
	fields := func(names ...string) *metav1.FieldsV1 {
		items := make([]string, 0, len(names))
		for _, n := range names {
			items = append(items, `"k:{\"name\":\"`+n+`\"}":{".":{},"f:name":{},"f:value":{}}`)
		}
		return metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"cache\"}":{".":{},"f:env":{` +
			strings.Join(items, ",") + `}}}}}}}`)
	}
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: fields("SHARED", "THEIRS")},
		{Manager: "clusteredcache", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields("OURS", "SHARED")},
	}}}
}

func variables() model.CacheReport {
	const env = "spec.template.spec.containers[cache].env"
	s := step(model.ActionChange, "StatefulSet", "v", "differs",
		fields.Change{Path: env + "[OURS].value", From: `"seen"`, To: `"wanted"`},
		fields.Change{Path: env + "[OURS]", From: `{"name":"OURS","value":"seen"}`},
		fields.Change{Path: env + "[SHARED].value", From: `"hunter2"`, To: `"wanted"`},
		fields.Change{Path: env + "[SHARED]", From: `{"name":"SHARED","value":"hunter2"}`},
		fields.Change{Path: env + "[THEIRS].value", From: `"hunter2"`, To: `"hunter2"`, By: []fields.Manager{kubectl}},
		fields.Change{Path: env + "[NOBODY].value", From: `"hunter2"`},
		fields.Change{Path: env + "[THEIRS].valueFrom.secretKeyRef.name", From: `"s"`, To: `"t"`},
		fields.Change{Path: env + "[REF]", From: `{"name":"REF","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}}`},
	)
	s.Live = shared()
	r := done("v", model.Verdict{State: model.Settled}, []model.Step{s}, model.Configured)
	r.Edit = &model.Edit{Changes: []fields.Change{
		{Path: `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`, From: `"hunter2"`, To: `"hunter2, too"`},
		{Path: "spec.podTemplate.spec.containers", From: `[{"name":"cache","env":[{"name":"P","value":"hunter2"},{"name":"Q","value":"hunter2, too"}]}]`,
			To: `[{"name":"cache","env":[{"name":"P","value":"hunter2"},{"name":"Q","value":"wanted"}]}]`},
		{Path: "spec.podTemplate", From: `{"spec":{"initContainers":[{"name":"i","\u0065nv":[{"name":"P","value":"hunter2"}]}]}}`},
		{Path: "spec.args", From: `["env"]`, To: `["\u003c","\\u003c"]`},
	}}
	return r
}

// The formats of a preview, each in a golden file.
func TestPreviews(t *testing.T) {
	everything := fleet(9, bumped(), onPaper(), adopted(), kept(), stalled(), refused(), released())
	everything.Interrupted, everything.Incomplete = true, "cannot reach <https://s>\n: no @answer"
	for name, f := range map[string]model.Fleet{
		"diff": everything, "diff-nothing": fleet(5), "diff-injected": fleet(1, injected()),
		"diff-variables": fleet(1, variables()), "diff-hostile": fleet(1, hostile()),
	} {
		for format, write := range map[string]func(*bytes.Buffer) error{
			"txt":     func(b *bytes.Buffer) error { return Text(b, f, TextOptions{Preview: true}) },
			"verbose": func(b *bytes.Buffer) error { return Text(b, f, TextOptions{Preview: true, Verbose: true}) },
			"md":      func(b *bytes.Buffer) error { return Markdown(b, f, MarkdownOptions{Preview: true, Verbose: true}) },
			"json":    func(b *bytes.Buffer) error { return JSON(b, f, JSONOptions{Preview: true}) },
			"names":   func(b *bytes.Buffer) error { return Name(b, f, NameOptions{Preview: true}) },
		} {
			t.Run(name+"/"+format, func(t *testing.T) {
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				golden.Equal(t, filepath.Join("testdata", name+"."+format+".golden"), b.Bytes())
				if strings.Contains(b.String(), "hunter2") || strings.ContainsAny(b.String(), "\x1b\r\a\x7f\t\u009b\u202e") {
					t.Error("a secret or a control character is shown")
				}
			})
		}
	}
}

// After a real pass Markdown and names tell what was done.
func TestMarkdownOfAPass(t *testing.T) {
	var md, names bytes.Buffer
	if err := Markdown(&md, whole5(), MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, filepath.Join("testdata", "everything.md.golden"), md.Bytes())
	if err := Name(&names, whole5(), NameOptions{}); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, filepath.Join("testdata", "everything.names.golden"), names.Bytes())
}

func TestPreviewSummary(t *testing.T) {
	finalizer := done("x", model.Verdict{}, []model.Step{step(model.ActionChange, "ClusteredCache", "x", "finalizer")}, model.Configured)
	status := done("x", model.Verdict{State: model.Progressing}, nil)
	status.StatusWritten = true
	relabelled := done("x", model.Verdict{}, nil)
	relabelled.Edit = &model.Edit{Changes: []fields.Change{{Path: "metadata.labels.a", To: `"b"`}}}
	same := done("x", model.Verdict{}, nil)
	same.Edit = &model.Edit{}
	tests := []struct {
		name    string
		report  model.CacheReport
		plan    string
		changes bool
	}{
		{"a change", bumped(), "Plan: 0 create, 1 change (3 nodes restart), 0 delete; 0 held, 1 edited", true},
		{"estimated steps are planned", onPaper(), "Plan: 2 create, 0 change, 0 delete; 1 held, 1 edited, 2 estimated", true},
		{"one object in two steps", adopted(), "Plan: 0 create, 1 change, 0 delete; 0 held", true},
		{"unchanged with a warning", kept(), "Plan: 0 create, 0 change, 0 delete; 0 held", false},
		{"holds", stalled(), "Plan: 0 create, 0 change, 0 delete; 2 held", false},
		{"the finalizer", finalizer, "Plan: 0 create, 0 change, 0 delete; 0 held", true},
		{"only the status", status, "Plan: 0 create, 0 change, 0 delete; 0 held", false},
		{"only an edit", relabelled, "Plan: 0 create, 0 change, 0 delete; 0 held, 1 edited", true},
		{"a manifest that is stored", same, "Plan: 0 create, 0 change, 0 delete; 0 held", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := Summarize(fleet(1, tc.report))
			if s.Plan() != tc.plan || s.Changes() != tc.changes {
				t.Errorf("got  %s, changes %v\nwant %s, changes %v", s.Plan(), s.Changes(), tc.plan, tc.changes)
			}
		})
	}
}
