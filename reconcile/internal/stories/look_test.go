package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// Looking says what is so now, not what a status says, of every cache, and needs
// rights to read alone.
func TestLook(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Named("new").Cache()
	w.Run(w.Product(nil), reconcile.Options{Scope: observe.Scope{Names: []string{"cache"}}, Concurrency: 1, Wait: true, Timeout: time.Minute})

	f := w.Look(reconcile.Options{})
	f.Wants(model.Settled, v1.ReasonReady)
	f.Of("new").Wants(model.Progressing, v1.ReasonPending)
	if s := f.Cache().Standing; s.Ready != 3 || s.Size != 3 || s.Runs != "1.6.38" || s.Nodes != nil {
		t.Errorf("standing: %+v", s)
	}
	// Nobody passed since, and the status says Ready.
	w.Edit(`spec: {version: broken}`)
	w.Look(reconcile.Options{}).Wants(model.Progressing, v1.ReasonPending)
	w.Pass()
	w.Eventually("a node is broken", func() bool {
		f = w.Look(reconcile.Options{Nodes: true})
		return f.Verdict().Reason == v1.ReasonImagePullBackOff
	})
	nodes := f.Cache().Standing.Nodes
	if len(nodes) != 3 || nodes[0].State != v1.ReasonReady || nodes[0].Newest || nodes[0].Version != "1.6.38" ||
		nodes[2].State != v1.ReasonImagePullBackOff || !nodes[2].Newest || nodes[2].Version != "broken" || nodes[2].Message == "" {
		t.Errorf("nodes: %+v", nodes)
	}
}

// A pipeline that may not write waits until the stored spec is its file's, and
// everything has settled.
func TestLookForAFile(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	file := `
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: cache}
spec: {version: "1.6.39", resources: {requests: {cpu: 1000m}}} # the size is an autoscaler's
`
	expect := func() *manifest.Set {
		m, err := manifest.Read([]string{"-"}, strings.NewReader(file), w.NS)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	w.Look(reconcile.Options{Manifests: expect()}).Wants(model.Progressing, v1.ReasonSpecNotApplied)
	// One that is not there is waited for: it has not been deleted meanwhile.
	absent := w.Look(reconcile.Options{Manifests: expect(), Wait: true, Timeout: 2 * time.Second})
	absent.Wants(model.Progressing, v1.ReasonSpecNotApplied)
	if !absent.TimedOut {
		t.Errorf("waited for a cache that is not there: %+v", absent)
	}
	w.Cache(`spec: {size: 2, resources: {requests: {cpu: "1"}}}`)
	w.Settle()
	f := w.Look(reconcile.Options{Manifests: expect()})
	f.Wants(model.Progressing, v1.ReasonSpecNotApplied)
	if m := f.Verdict().Message; m != `the stored spec is not that of standard input: spec.version is "1.6.38" and not "1.6.39"` {
		t.Errorf("message: %s", m)
	}
	f = w.Look(reconcile.Options{Manifests: expect(), Wait: true, Timeout: 2 * time.Second})
	if !f.TimedOut {
		t.Errorf("waited: %+v", f)
	}
	time.AfterFunc(time.Second, func() {
		w.Edit(`spec: {version: "1.6.39"}`)
		w.Settle()
	})
	f = w.Look(reconcile.Options{Manifests: expect(), Wait: true, Timeout: time.Minute})
	f.Wants(model.Settled, v1.ReasonReady)
	// What is being deleted is not what the file asks for, also when we have let go of it.
	w.Edit("metadata: {finalizers: [" + v1.Finalizer + ", test.example.com/keep]}")
	w.Remove()
	w.Settle()
	f = w.Look(reconcile.Options{Manifests: expect()})
	f.Wants(model.Progressing, v1.ReasonSpecNotApplied)
	w.Edit(`metadata: {finalizers: null}`)
}

// What others have made under the name of a child has not our label, and is
// found all the same, as a pass would find it.
func TestLookFindsWhatTheListsDoNotShow(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Create(w.SomeService("cache"))
	w.Cache()
	w.Pass().Wants(model.Stalled, v1.ReasonNameConflict)
	w.Look(reconcile.Options{}).Wants(model.Stalled, v1.ReasonNameConflict)
}

// Pods are read once a pass, and only while there is something to learn from
// them.
func TestPodsAreReadForUnsettledCachesOnly(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	lists := func() int {
		n := 0
		client := w.Product(func(_ int, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				n++
			}
		})
		w.Run(client, reconcile.Options{Concurrency: 1})
		return n
	}
	if n := lists(); n != 0 {
		t.Errorf("%d lists of pods for a settled cache", n)
	}
	w.Edit(`spec: {version: broken}`)
	w.Until(v1.ReasonImagePullBackOff)
	if n := lists(); n != 1 {
		t.Errorf("%d lists of pods for a cache that has not settled", n)
	}
}

// A node that is being deleted counts no more, though it is ready still.
func TestTerminatingNodesDoNotCount(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	pod := w.Node(1)
	w.Patch(pod, `{"metadata":{"finalizers":["test.example.com/keep"]}}`)
	w.Delete(pod)
	w.Eventually("the controller has seen it", func() bool {
		return w.StatefulSet().Status.UpdatedReplicas == 2
	})
	w.Pass()
	c := w.Stored()
	if c.Status.ReadyReplicas != 2 || world.Available(c) != metav1.ConditionFalse {
		t.Errorf("status: %+v", c.Status)
	}
	w.Patch(pod, `{"metadata":{"finalizers":null}}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
}

// What kubectl, Flux and Argo make of our conditions.
func TestKstatus(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	is := func(when string, want kstatus.Status) {
		t.Helper()
		got, err := kstatus.Compute(&unstructured.Unstructured{Object: w.Unstructured().Object})
		if err != nil || got.Status != want {
			t.Errorf("%s: %+v (%v), want %s", when, got, err, want)
		}
	}
	c := w.Cache()
	is("before the first pass", kstatus.InProgressStatus)
	w.Pass()
	is("after the first pass", kstatus.InProgressStatus)
	w.Settle()
	is("settled", kstatus.CurrentStatus)
	w.Edit(`spec: {version: broken}`)
	is("changed, before a pass", kstatus.InProgressStatus)
	w.Until(v1.ReasonImagePullBackOff)
	is("a node is broken", kstatus.InProgressStatus)
	w.Edit(`spec: {version: "1.6.38", podTemplate: {"spec":{"restartPolicy":"Never"}}}`)
	w.Until(v1.ReasonInvalidOverlay)
	is("blocked", kstatus.FailedStatus)
	w.Edit(`spec: {version: broken, podTemplate: null}`)
	w.Edit(`spec: {rollout: {progressDeadlineSeconds: 2}}`)
	w.Until(v1.ReasonProgressDeadlineExceeded)
	is("past the deadline", kstatus.FailedStatus)
	w.Edit(`spec: {version: "1.6.38"}`)
	w.Settle()
	is("healed", kstatus.CurrentStatus)
	w.Edit(`spec: {suspend: true}`)
	w.Pass()
	is("suspended", kstatus.CurrentStatus)
	w.Edit("metadata: {finalizers: [" + v1.Finalizer + ", test.example.com/keep]}")
	w.Delete(c)
	is("being deleted", kstatus.TerminatingStatus)
	w.Edit(`metadata: {finalizers: null}`)
}

// A partition or OnDelete that someone set is understood: what they let through
// has settled, and nobody says that the new version runs.
func TestRolloutPausedBySomeone(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]string{
		"partition": `{"type":"RollingUpdate","rollingUpdate":{"partition":1}}`,
		"OnDelete":  `{"type":"OnDelete","rollingUpdate":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := world.Shared(t)
			w.Cache()
			w.Settle()
			w.Patch(w.StatefulSet(), `{"spec":{"updateStrategy":`+strategy+`}}`, client.FieldOwner("user"))
			w.Edit(`spec: {version: "2"}`)
			w.Settle().Wants(model.Settled, v1.ReasonRolloutPaused)
			want := map[string]string{"partition": "2 of 3 nodes on the new version, paused by partition", "OnDelete": "0 of 3 nodes on the new version, paused by OnDelete"}[name]
			w.Says("3 of 3 nodes ready; " + want)
			if c := w.Stored(); c.Status.CurrentVersion != "1.6.38" || world.Available(c) != metav1.ConditionTrue {
				t.Errorf("held: %+v", c.Status)
			}
			w.WritesNothing("a pass over a held rollout", func() { w.Pass() })
			for i := range 3 {
				_ = w.Env.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: w.Meta(fmt.Sprintf("cache-%d", i))})
			}
			if name == "partition" {
				w.Patch(w.StatefulSet(), `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`, client.FieldOwner("user"))
			}
			w.Until(v1.ReasonReady)
			if c := w.Stored(); c.Status.CurrentVersion != "2" {
				t.Errorf("let go: %+v", c.Status)
			}
		})
	}
}
