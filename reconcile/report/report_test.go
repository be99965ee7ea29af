package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/internal/golden"
	"example.com/clusteredcache/reconcile/model"
)

var (
	someTime = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	kubectl  = fields.Manager{Name: "kubectl-scale", Operation: "Update", Time: someTime}
	argo     = fields.Manager{Name: "argocd-controller", Operation: "Apply"}
)

func ref(kind, name string) model.Ref {
	return model.Ref{Kind: model.Kind(kind), Namespace: "shop", Name: name}
}

func step(action model.Action, kind, name, reason string, changes ...fields.Change) model.Step {
	return model.Step{Action: action, Target: ref(kind, name), Reason: reason, Changes: changes}
}

// done is a report whose steps went as the results say; steps without a result
// were not attempted.
func done(name string, verdict model.Verdict, steps []model.Step, results ...model.Result) model.CacheReport {
	r := model.CacheReport{Namespace: "shop", Name: name, Plan: model.Plan{Steps: steps}, Verdict: verdict}
	for i, result := range results {
		r.Outcomes = append(r.Outcomes, model.Outcome{Step: steps[i], Result: result})
	}
	return r
}

func fresh() model.CacheReport {
	return done("a", model.Verdict{State: model.Progressing, Reason: "Progressing", Message: "0 of 3 nodes are ready"},
		[]model.Step{
			step(model.ActionChange, "ClusteredCache", "a", "finalizer missing"),
			step(model.ActionCreate, "StatefulSet", "a", "missing"),
			step(model.ActionCreate, "Service", "a", "missing"),
		}, model.Configured, model.Created, model.Created)
}

func changed() model.CacheReport {
	s := step(model.ActionChange, "StatefulSet", "b", "spec.replicas and 2 more differ",
		fields.Change{Path: "spec.replicas", From: "3", To: "5", By: []fields.Manager{kubectl, argo}},
		fields.Change{Path: "spec.template.metadata.labels[a/b]", To: `"x"`},
		fields.Change{Path: "spec.template.spec.containers[cache].args", From: `["-m","64"]`},
		fields.Change{Path: "spec.template.spec.containers[cache].image", From: `"memcached:1"`, To: `"memcached:1"`, By: []fields.Manager{argo}},
	)
	s.Restarts = 3
	r := done("b", model.Verdict{State: model.Progressing, Reason: "Progressing", Message: "1 of 3 nodes is updated"},
		[]model.Step{s}, model.Configured)
	r.StatusWritten = true
	return r
}

func stalled() model.CacheReport {
	r := done("c", model.Verdict{State: model.Stalled, Reason: "NameConflict", Message: "Service shop/c belongs to Deployment shop/web"}, nil)
	r.Plan.Holds = []model.Hold{
		{Gate: "foreign", Target: ref("Service", "c"), Class: model.Blocked, Reason: "NameConflict", Message: "Service shop/c belongs to Deployment shop/web: rename the cache"},
		{Gate: "config", Target: ref("StatefulSet", "c"), Class: model.Waiting, Reason: "ConfigMapNotFound", Message: "ConfigMap shop/conf does not exist"},
	}
	return r
}

func refused() model.CacheReport {
	r := done("d", model.Verdict{State: model.NotDone, Reason: "ApplyRejected", Message: "StatefulSet shop/d was refused"},
		[]model.Step{
			step(model.ActionCreate, "Service", "nodes-d", "missing"),
			step(model.ActionCreate, "StatefulSet", "d", "missing"),
			step(model.ActionDelete, "PodDisruptionBudget", "d", "size is 1"),
		}, model.Created, model.Failed)
	r.Outcomes[1].Err = errors.New("admission webhook \"x\" denied the request:\n\x1b[31mno\x1b[0m " + strings.Repeat("blah ", 200))
	return r
}

func released() model.CacheReport {
	return done("e", model.Verdict{State: model.Settled, Message: "deleted"},
		[]model.Step{
			step(model.ActionDelete, "Service", "e", "the cache is being deleted"),
			step(model.ActionFinalize, "ClusteredCache", "e", "nothing is left to do"),
		}, model.Deleted, model.Finalized)
}

func warned() model.CacheReport {
	r := done("f", model.Verdict{State: model.Settled, Reason: "Ready"},
		[]model.Step{step(model.ActionChange, "StatefulSet", "f", "spec.replicas differs")}, model.Unchanged)
	r.Outcomes[0].Warning = "the server took the apply and changed nothing: admission holds spec.replicas at 3"
	return r
}

func secrets() model.CacheReport {
	const container = `{"env":[{"name":"PASSWORD","value":"hunter2"},{"name":"REF","valueFrom":{"secretKeyRef":{"key":"k"}}}],"name":"x"}`
	by := []fields.Manager{kubectl}
	return done("g", model.Verdict{State: model.Settled, Reason: "Ready"}, []model.Step{
		step(model.ActionChange, "StatefulSet", "g", "differs",
			fields.Change{Path: "metadata.annotations", From: `{"kubectl.kubernetes.io/last-applied-configuration":"hunter2","x":"y"}`, To: `{"x":"z"}`},
			fields.Change{Path: "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", From: `"hunter2"`},
			fields.Change{Path: "spec.template.spec.containers", From: `[` + container + `]`, By: by},
			fields.Change{Path: "spec.template.spec.containers[x]", From: container, To: container, By: by},
			fields.Change{Path: "spec.template.spec.containers[x].env", From: `[{"name":"A","value":"hunter2"}]`, To: `[{"name":"A","value":"ours"}]`, By: by},
			fields.Change{Path: "spec.template.spec.containers[x].env[A].value", From: `"hunter2"`, To: `"ours"`, By: by},
			fields.Change{Path: "spec.template.spec.containers[x].env[B].value", From: `"was ours"`, To: `"ours"`},
			fields.Change{Path: "spec.template.spec.containers[x].env[C].value", From: `"hunter2"`, To: `"hunter2"`, By: by},
		),
	}, model.Configured)
}

func hostile() model.CacheReport {
	r := done("h\x1b[2J", model.Verdict{State: model.Settled, Reason: "Ready\r", Message: "bell \a, C1 \u009b31m, turn \u202e, bad \xff, é 日本"}, []model.Step{
		step(model.ActionChange, "StatefulSet", "h\nDone: 9 created", "a\tb",
			fields.Change{Path: "x\n", From: "1\n2", To: strings.Repeat("é", 300), By: []fields.Manager{{Name: "m\x1b]0;t\a", Operation: "Update"}}}),
	}, model.Configured)
	r.Plan.Holds = []model.Hold{{Reason: "R\n", Class: "blocked", Target: ref("Service", "h\x7f"), Message: "m\u2028n"}}
	return r
}

func fleet(total int, reports ...model.CacheReport) model.Fleet {
	return model.Fleet{Total: total, Caches: reports}
}

func whole5() model.Fleet {
	f := fleet(8, warned(), stalled(), changed(), refused(), released(), fresh())
	f.Requests = map[string]int{"list clusteredcaches": 1, "apply statefulsets": 12}
	return f
}

func TestText(t *testing.T) {
	cut := fleet(3, fresh())
	cut.TimedOut, cut.Interrupted = true, true
	tests := []struct {
		name  string
		fleet model.Fleet
		o     TextOptions
	}{
		{"empty", model.Fleet{}, TextOptions{}},
		{"settled", fleet(5), TextOptions{}},
		{"everything", whole5(), TextOptions{}},
		{"preview", whole5(), TextOptions{Preview: true}},
		{"verbose", whole5(), TextOptions{Verbose: true}},
		{"color", whole5(), TextOptions{Color: true}},
		{"cut", cut, TextOptions{}},
		{"secrets", fleet(1, secrets()), TextOptions{}},
		{"hostile", fleet(1, hostile()), TextOptions{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Text(&b, tc.fleet, tc.o); err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, filepath.Join("testdata", tc.name+".golden"), b.Bytes())
			if strings.Contains(b.String(), "hunter2") {
				t.Error("a secret is shown")
			}
			if !tc.o.Color && strings.ContainsAny(b.String(), "\x1b\r\a\x7f\t\u009b\u202e") {
				t.Error("a control character is shown")
			}
		})
	}
}

func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		fleet model.Fleet
		o     JSONOptions
	}{
		"empty":      {fleet: model.Fleet{}},
		"everything": {fleet: whole5()},
		"preview":    {fleet: fleet(1, refused()), o: JSONOptions{Preview: true}},
		"secrets":    {fleet: fleet(1, secrets())},
		"hostile":    {fleet: fleet(1, hostile())},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := JSON(&b, tc.fleet, tc.o); err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, filepath.Join("testdata", name+".json.golden"), b.Bytes())
			if strings.Contains(b.String(), "hunter2") || strings.ContainsAny(b.String(), "\x1b\r\a\x7f\u009b\u202e") {
				t.Error("a secret or a control character is shown")
			}
			var d document
			if err := json.Unmarshal(b.Bytes(), &d); err != nil || d.Schema != Schema {
				t.Errorf("does not read back: %v", err)
			}
		})
	}
}

func TestSummaryLines(t *testing.T) {
	one := changed()
	one.Outcomes[0].Step.Restarts = 1
	tests := []struct {
		name       string
		fleet      model.Fleet
		plan, done string
		writes     int
	}{
		{"empty", model.Fleet{}, "Plan: 0 create, 0 change, 0 delete; 0 held",
			"Done: 0 created, 0 changed, 0 deleted; 0 held, 0 failed; 0 caches: 0 settled, 0 progressing, 0 stalled, 0 failed", 0},
		{"the finalizer is a write that is not counted", fleet(1, fresh()), "Plan: 2 create, 0 change, 0 delete; 0 held",
			"Done: 2 created, 0 changed, 0 deleted; 0 held, 0 failed; 1 cache: 0 settled, 1 progressing, 0 stalled, 0 failed", 3},
		{"restarts", fleet(2, changed()), "Plan: 0 create, 1 change (3 nodes restart), 0 delete; 0 held",
			"Done: 0 created, 1 changed (3 nodes restart), 0 deleted; 0 held, 0 failed; 2 caches: 1 settled, 1 progressing, 0 stalled, 0 failed", 1},
		{"one restart", fleet(2, one), "Plan: 0 create, 1 change (1 node restarts), 0 delete; 0 held",
			"Done: 0 created, 1 changed (1 node restarts), 0 deleted; 0 held, 0 failed; 2 caches: 1 settled, 1 progressing, 0 stalled, 0 failed", 1},
		{"finalize", fleet(1, released()), "Plan: 0 create, 0 change, 1 delete, 1 finalize; 0 held",
			"Done: 0 created, 0 changed, 1 deleted, 1 finalized; 0 held, 0 failed; 1 cache: 1 settled, 0 progressing, 0 stalled, 0 failed", 2},
		{"unchanged is no change", fleet(1, warned()), "Plan: 0 create, 0 change, 0 delete; 0 held",
			"Done: 0 created, 0 changed, 0 deleted; 0 held, 0 failed; 1 cache: 1 settled, 0 progressing, 0 stalled, 0 failed", 0},
		{"a failure leaves a step: planned, not done", fleet(1, refused()), "Plan: 1 create, 0 change, 1 delete; 0 held, 1 failed",
			"Done: 1 created, 0 changed, 0 deleted; 0 held, 1 failed; 1 cache: 0 settled, 0 progressing, 0 stalled, 1 failed", 2},
		{"holds", fleet(1, stalled()), "Plan: 0 create, 0 change, 0 delete; 2 held",
			"Done: 0 created, 0 changed, 0 deleted; 2 held, 0 failed; 1 cache: 0 settled, 0 progressing, 1 stalled, 0 failed", 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := Summarize(tc.fleet)
			if got := s.Plan(); got != tc.plan {
				t.Errorf("got  %s\nwant %s", got, tc.plan)
			}
			if got := s.Done(); got != tc.done {
				t.Errorf("got  %s\nwant %s", got, tc.done)
			}
			if s.Writes != tc.writes {
				t.Errorf("%d writes, want %d", s.Writes, tc.writes)
			}
		})
	}
}

// The order of the reports in a fleet does not matter, and is left as it is.
func TestTextIsSorted(t *testing.T) {
	a, b := fleet(2, fresh(), changed()), fleet(2, changed(), fresh())
	var x, y bytes.Buffer
	if err := errors.Join(Text(&x, a, TextOptions{}), Text(&y, b, TextOptions{})); err != nil {
		t.Fatal(err)
	}
	if x.String() != y.String() || b.Caches[0].Name != "b" {
		t.Errorf("got\n%s\nand\n%s", &x, &y)
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestWriteErrors(t *testing.T) {
	if Text(closed{}, model.Fleet{}, TextOptions{}) == nil || JSON(closed{}, model.Fleet{}, JSONOptions{}) == nil {
		t.Error("an error of the writer is lost")
	}
}
