package status_test

import (
	"cmp"
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/scenario"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/status"
)

// observed is one row of the truth table: a StatefulSet of three nodes and the
// fields of its status; "" is a field that is absent.
type observed struct {
	strategy              string // "": RollingUpdate
	minReady              int32
	generation            string // of 2
	current, update       string
	replicas              string
	ready, updated, avail string
}

// believed is what the status must say.
type believed struct {
	available, reconciling, stalled string
	reason                          string
	version                         string
}

// For every combination of what the StatefulSet's status may say: the
// conditions, the reason and the version. The cache ran 1 and wants 2.
func TestTruthTable(t *testing.T) {
	rows := 0
	for _, generation := range []string{"", "1", "2"} {
		for _, revisions := range [][2]string{{"", ""}, {"a", "a"}, {"a", "b"}} {
			for _, replicas := range []string{"", "2", "3", "4"} {
				for _, ready := range []string{"", "2", "3"} {
					for _, updated := range []string{"", "2", "3"} {
						for _, avail := range []string{"", "2", "3"} {
							for _, minReady := range []int32{0, 5} {
								o := observed{generation: generation, current: revisions[0], update: revisions[1],
									replicas: replicas, ready: ready, updated: updated, avail: avail, minReady: minReady}
								if got, want := look(t, o), rule(o); got != want {
									t.Errorf("%+v\ngot  %+v\nwant %+v", o, got, want)
								}
								rows++
							}
						}
					}
				}
			}
		}
	}
	if rows != 1944 {
		t.Errorf("%d rows", rows)
	}
}

// rule is the truth table in words.
func rule(o observed) believed {
	b := believed{available: "False", reconciling: "True", stalled: "False", version: "1"}
	seen := o.generation == "2"
	switch {
	case o.ready != "3":
	case !seen:
		b.available = "Unknown" // all ready, but of which generation?
	default:
		b.available = "True"
	}
	longEnough := o.minReady == 0 || o.avail == "3"
	switch {
	case !seen:
		b.reason = v1.ReasonNotObserved
	case o.replicas == "3" && o.ready == "3" && o.updated == "3" && o.current == o.update && longEnough:
		b.reason, b.reconciling, b.version = v1.ReasonReady, "False", "2"
	default:
		b.reason = v1.ReasonProgressing
	}
	return b
}

// What a person set on the StatefulSet, and rows that are easy to get wrong.
func TestTruthTableRows(t *testing.T) {
	partition := `{"type":"RollingUpdate","rollingUpdate":{"partition":1}}`
	onDelete := `{"type":"OnDelete"}`
	held := believed{"True", "False", "False", v1.ReasonRolloutPaused, "1"}
	for name, tc := range map[string]struct {
		observed
		want believed
	}{
		"nothing is known":                                        {observed{}, believed{"False", "True", "False", v1.ReasonNotObserved, "1"}},
		"the numbers of the generation before":                    {observed{generation: "1", current: "a", update: "a", replicas: "3", ready: "3", updated: "3"}, believed{"Unknown", "True", "False", v1.ReasonNotObserved, "1"}},
		"seen, none replaced yet":                                 {observed{generation: "2", current: "a", update: "b", replicas: "3", ready: "3"}, believed{"True", "True", "False", v1.ReasonProgressing, "1"}},
		"the last node is being replaced":                         {observed{generation: "2", current: "a", update: "b", replicas: "3", ready: "2", updated: "3"}, believed{"False", "True", "False", v1.ReasonProgressing, "1"}},
		"done":                                                    {observed{generation: "2", current: "b", update: "b", replicas: "3", ready: "3", updated: "3"}, believed{"True", "False", "False", v1.ReasonReady, "2"}},
		"done, one node too many":                                 {observed{generation: "2", current: "b", update: "b", replicas: "4", ready: "3", updated: "3"}, believed{"True", "True", "False", v1.ReasonProgressing, "1"}},
		"partition: two of three is all it lets":                  {observed{strategy: partition, generation: "2", current: "a", update: "b", replicas: "3", ready: "3", updated: "2"}, held},
		"partition: one still to come":                            {observed{strategy: partition, generation: "2", current: "a", update: "b", replicas: "3", ready: "3", updated: ""}, believed{"True", "True", "False", v1.ReasonProgressing, "1"}},
		"partition: a node is not ready":                          {observed{strategy: partition, generation: "2", current: "a", update: "b", replicas: "3", ready: "2", updated: "2"}, believed{"False", "True", "False", v1.ReasonProgressing, "1"}},
		"partition: numbers of the generation before":             {observed{strategy: partition, generation: "1", current: "a", update: "a", replicas: "3", ready: "3", updated: "3"}, believed{"Unknown", "True", "False", v1.ReasonNotObserved, "1"}},
		"OnDelete: nobody deleted anything":                       {observed{strategy: onDelete, generation: "2", current: "a", update: "b", replicas: "3", ready: "3"}, held},
		"OnDelete: all deleted, the current revision never moves": {observed{strategy: onDelete, generation: "2", current: "a", update: "b", replicas: "3", ready: "3", updated: "3"}, believed{"True", "False", "False", v1.ReasonReady, "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := look(t, tc.observed); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// look is what the status says of a cache whose children are as they should be
// and whose StatefulSet has this status.
func look(t *testing.T, o observed) believed {
	t.Helper()
	in := truthInput(t, o)
	intent, _ := status.For(in, model.Plan{}, nil)
	b := believed{}
	for _, c := range intent.Status.Conditions {
		switch *c.Type {
		case v1.ConditionAvailable:
			b.available, b.reason = string(*c.Status), *c.Reason
		case v1.ConditionReconciling:
			b.reconciling = string(*c.Status)
		case v1.ConditionStalled:
			b.stalled = string(*c.Status)
		}
		if *c.ObservedGeneration != 2 {
			t.Errorf("%+v: %s of generation %d", o, *c.Type, *c.ObservedGeneration)
		}
	}
	if v := intent.Status.CurrentVersion; v != nil {
		b.version = *v
	}
	if r := intent.Status.ReadyReplicas; r == nil || o.ready == "" && *r != 0 {
		t.Errorf("%+v: readyReplicas %v, and an absent number is a written zero", o, r)
	}
	return b
}

func truthInput(t *testing.T, o observed) model.Input {
	t.Helper()
	cache := &v1.ClusteredCache{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache", UID: "u", Generation: 2}}
	cache.Spec = v1.ClusteredCacheSpec{Size: 3, Version: "2"}
	cache.Status.CurrentVersion = "1"
	fields := map[string]any{}
	for name, value := range map[string]string{
		"observedGeneration": o.generation, "replicas": o.replicas, "readyReplicas": o.ready,
		"updatedReplicas": o.updated, "availableReplicas": o.avail,
	} {
		if value != "" {
			fields[name] = json.Number(value)
		}
	}
	for name, value := range map[string]string{"currentRevision": o.current, "updateRevision": o.update} {
		if value != "" {
			fields[name] = value
		}
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "cache", "generation": 2, "ownerReferences": []any{
			map[string]any{"apiVersion": "cache.example.com/v1", "kind": "ClusteredCache", "name": "cache", "uid": "u", "controller": true}}},
		"spec": map[string]any{"replicas": 3, "minReadySeconds": o.minReady, "updateStrategy": json.RawMessage(cmp.Or(o.strategy, `{"type":"RollingUpdate"}`)),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "cache", "image": "memcached:2"}}}}},
		"status": fields,
	})
	if err != nil {
		t.Fatal(err)
	}
	sts := &appsv1.StatefulSet{}
	if err := json.Unmarshal(raw, sts); err != nil {
		t.Fatal(err)
	}
	return model.Input{Cache: cache, Live: model.Live{StatefulSet: sts}, Now: scenario.Now}
}

// A StatefulSet that was made anew around running nodes knows nothing of them
// yet: they are not said to be gone.
func TestReplacedStatefulSet(t *testing.T) {
	in := truthInput(t, observed{generation: "2", current: "a", update: "a", replicas: "3", ready: "3", updated: "3"})
	fresh := in.Live.StatefulSet.DeepCopy()
	fresh.Generation, fresh.Status = 1, appsv1.StatefulSetStatus{}
	intent, verdict := status.For(in, model.Plan{}, []model.Outcome{{Step: model.Step{Action: model.ActionReplace}, Result: model.Replaced, Object: fresh}})
	if a := intent.Status.Conditions[0]; *a.Status != metav1.ConditionUnknown || verdict.Reason != v1.ReasonNotObserved || *intent.Status.ReadyReplicas != 3 {
		t.Errorf("%s, %+v, %d ready", *a.Status, verdict, *intent.Status.ReadyReplicas)
	}
}
