package report

import (
	"bytes"
	"errors"
	"testing"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/internal/golden"
	"example.com/clusteredcache/reconcile/model"
)

// standings are caches as the command status finds them.
func standings() model.Fleet {
	settled := model.CacheReport{Namespace: "shop", Name: "a", Verdict: model.Verdict{State: model.Settled, Reason: "Ready", Message: "1 of 1 nodes ready"},
		Standing: &model.Standing{Ready: 1, Size: 1, Runs: "1.6.38", Wants: "1.6.38"}}
	rolling := model.CacheReport{Namespace: "shop", Name: "b", Verdict: model.Verdict{State: model.Progressing, Reason: "ImagePullBackOff", Message: "2 of 3 nodes ready"},
		Standing: &model.Standing{Ready: 2, Size: 3, Runs: "1.6.38", Wants: "1.6.\x1b[31m39", Nodes: []model.Node{
			{Name: "b-0", State: "Ready", Version: "1.6.38", Volume: "2Gi"},
			{Name: "b-1", State: "Missing", Message: "is forbidden"},
			{Name: "b-2", State: "ImagePullBackOff", Version: "1.6.39", Newest: true, Message: "image x cannot be pulled:\nno"},
		}}}
	held := stalled()
	held.Standing = &model.Standing{Size: 3, Wants: "1"}
	failed := model.CacheReport{Namespace: "shop", Name: "e", Verdict: model.Verdict{State: model.NotDone, Reason: "Undecodable", Message: "the stored object does not decode"}}
	return model.Fleet{Total: 4, Caches: []model.CacheReport{failed, held, rolling, settled}, Requests: map[string]int{"list pods": 1}}
}

func TestStanding(t *testing.T) {
	for name, o := range map[string]TextOptions{"standing": {}, "standing-verbose": {Verbose: true}} {
		var b bytes.Buffer
		if err := Standing(&b, standings(), o); err != nil {
			t.Fatal(err)
		}
		golden.Equal(t, "testdata/"+name+".golden", b.Bytes())
	}
	var b bytes.Buffer
	if err := JSON(&b, standings(), JSONOptions{}); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/standing.json.golden", b.Bytes())
}

// A node that was deleted, a StatefulSet that was replaced, a downgrade, and at
// last the caches that waiting was in vain for.
func TestDayTwo(t *testing.T) {
	down := step(model.ActionChange, "StatefulSet", "a", "spec.template.spec.containers[cache].image differs")
	down.Downgrade, down.Restarts = "downgrade from 2 to 1", 3
	stuck := step(model.ActionDelete, "Pod", "a-2", "of an older revision and in the way of the rollout (CrashLoopBackOff: x)")
	healing := done("a", model.Verdict{State: model.Progressing, Reason: "CrashLoopBackOff", Message: "2 of 3 nodes ready"},
		[]model.Step{down, stuck}, model.Configured, model.Deleted)
	larger := step(model.ActionReplace, "StatefulSet", "b", "its claim template cannot change",
		fields.Change{Path: "spec.volumeClaimTemplates[data].spec.resources.requests.storage", From: `"1Gi"`, To: `"2Gi"`})
	replaced := done("b", model.Verdict{State: model.Settled, Reason: "Ready", Message: "3 of 3 nodes ready"}, []model.Step{larger}, model.Replaced)
	f := model.Fleet{Total: 5, Caches: []model.CacheReport{healing, replaced, stalled(), refused()}, Waited: true, TimedOut: true}
	var b bytes.Buffer
	if err := Text(&b, f, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/day-two.golden", b.Bytes())
	b.Reset()
	if err := Markdown(&b, f, MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/day-two.md.golden", b.Bytes())

	refuses := errors.New("full")
	if err := Standing(broken{refuses}, f, TextOptions{}); !errors.Is(err, refuses) {
		t.Errorf("got %v", err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }
