package stories_test

import (
	"fmt"

	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/report"
)

// Volumes grow from 1Gi to 2Gi: the claims first, and when the storage system
// has grown them, the StatefulSet is made anew around its running nodes. Until
// then the status says how many are done.
func TestVolumesGrow(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Storage("1Gi", w.Class("fast", true)))
	hold := make(chan struct{})
	w.StorageSystem(func(claim string) bool {
		select {
		case <-hold:
			return true
		default:
			return claim != "data-cache-2"
		}
	})
	w.Settle()
	w.Bound(3)
	before, revision := w.Nodes(), w.StatefulSet().Status.UpdateRevision
	old := w.StatefulSet().UID

	w.Edit(`spec: {storage: {size: 2Gi}}`)
	f := w.Pass()
	f.Wants(model.Progressing, v1.ReasonVolumeResizing)
	if got := f.Changes("PersistentVolumeClaim"); len(got) != 1 || got[0].From != `"1Gi"` || got[0].To != `"2Gi"` {
		t.Errorf("changes of the first claim: %+v", got)
	}
	w.Eventually("two volumes have grown", func() bool {
		w.Pass()
		return strings.Contains(w.Message(), "2 of 3 volumes have grown to 2Gi")
	})
	if n := w.TemplateAsks(); n != "1Gi" {
		t.Errorf("the template asks for %s already", n)
	}
	close(hold)
	w.Eventually("the third has grown", func() bool {
		has := w.Claim(2).Status.Capacity["storage"]
		return has.String() == "2Gi"
	})
	// A dry run shows what it cannot try, and leaves the StatefulSet there.
	dry := w.Run(client.NewDryRunClient(w.Product(nil)), reconcile.Options{Concurrency: 1})
	if o := dry.Cache().Outcomes; len(o) != 1 || o[0].Step.Action != model.ActionReplace || o[0].Result != model.Estimated {
		t.Errorf("dry run: %+v", o)
	}
	if sts := w.StatefulSet(); sts.UID != old || sts.DeletionTimestamp != nil {
		t.Error("a dry run replaced it")
	}
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	sts := w.StatefulSet()
	if n := w.TemplateAsks(); n != "2Gi" || sts.UID == old {
		t.Errorf("the template asks for %s, same StatefulSet: %v", n, sts.UID == old)
	}
	if sts.Status.UpdateRevision != revision || sts.Status.CurrentRevision != revision {
		t.Errorf("revision %s became %s", revision, sts.Status.UpdateRevision)
	}
	w.NothingToDo()
	// The new StatefulSet does what one does: nodes come and go, claims are kept.
	w.Edit(`spec: {size: 4}`)
	w.Settle()
	if asks := w.ClaimAsks(3); asks != "2Gi" {
		t.Errorf("the new node asks for %s", asks)
	}
	// Its controller, which has made a node by now, has replaced none.
	after := w.Nodes()
	delete(after, "cache-3")
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("nodes restarted: %s", d)
	}
}

// A pass that dies between deleting the StatefulSet and making it anew is made
// good by the next, and the nodes run on.
func TestReplacementThatWasCutShort(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Storage("1Gi", w.Class("fast", true)))
	w.StorageSystem(world.Stores)
	w.Settle()
	w.Bound(3)
	before := w.Nodes()
	w.Edit(`spec: {storage: {size: 2Gi}}`)
	lift := refuseNewStatefulSets(w)
	w.Eventually("the new StatefulSet is refused", func() bool {
		f := w.Pass()
		return f.Verdict().Reason == v1.ReasonApplyRejected
	})
	w.Gone(&appsv1.StatefulSet{})
	lift()
	w.Passing("the next pass goes on", func() bool { return !w.IsGone("cache", &appsv1.StatefulSet{}) })
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	if n := w.TemplateAsks(); n != "2Gi" {
		t.Errorf("the template asks for %s", n)
	}
	if d := cmp.Diff(before, w.Nodes()); d != "" {
		t.Errorf("nodes restarted: %s", d)
	}
}

// A class that does not grow, a smaller size, and another class: held, named
// with old and new value and the way out, and the rest of the edit
// goes through.
func TestStorageThatCannotChange(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	fixed := w.Class("fixed", false)
	w.StorageSystem(world.Stores)
	w.Cache(world.Storage("2Gi", fixed))
	w.Settle()
	w.Bound(3)
	size := int32(3)
	for _, tc := range []struct {
		name   string
		change string
		says   []string
	}{
		{"a class that does not grow", `{size: 3Gi}`,
			[]string{"spec.storage.size cannot change from 2Gi to 3Gi", "StorageClass " + fixed + " does not let volumes grow", "Set it back"}},
		{"smaller", `{size: 1Gi}`,
			[]string{"spec.storage.size cannot change from 2Gi to 1Gi", "set it back", "delete statefulset cache --cascade=orphan"}},
		{"another class", `{storageClassName: faster}`,
			[]string{"spec.storage.storageClassName cannot change from " + fixed + " to faster", "set it back", "delete statefulset cache --cascade=orphan"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			size++
			w.Edit(fmt.Sprintf("spec: {size: %d, storage: {size: 2Gi, storageClassName: %s}}", size, fixed))
			w.Edit("spec: {storage: " + tc.change + "}")
			w.Pass().Wants(model.Stalled, v1.ReasonImmutableField)
			w.Says(tc.says...)
			if sts := w.StatefulSet(); *sts.Spec.Replicas != size || w.TemplateAsks() != "2Gi" {
				t.Errorf("%d replicas of %s", *sts.Spec.Replicas, w.TemplateAsks())
			}
			if q := w.Claim(0).Spec.Resources.Requests["storage"]; q.String() != "2Gi" {
				t.Errorf("the claim asks for %s", q.String())
			}
		})
	}
}

// Storage for a cache that has none, and a larger size in the same edit: the
// one is held and named, the other goes through, other caches are done, and a
// run ends as partial.
func TestStorageIsAdded(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Storage("1Gi", ""), `spec: {storage: null}`)
	w.Named("other").Cache()
	w.Settle()
	w.Edit(`spec: {storage: {size: 5Gi}, size: 4}`)
	w.Named("other").Edit(`spec: {size: 2}`)
	f := w.Settle()
	f.Wants(model.Stalled, v1.ReasonImmutableField)
	f.Of("other").Wants(model.Settled, v1.ReasonReady)
	w.Says("spec.storage cannot change from none to 5Gi")
	if n := *w.StatefulSet().Spec.Replicas; n != 4 {
		t.Errorf("%d replicas", n)
	}
	if s := report.Summarize(f.Fleet).Caches; s.Stalled != 1 || s.Settled != 1 {
		t.Errorf("%+v", s)
	}
}

// A volume that someone made larger by hand is left alone, now and when the
// others grow. A pass over a settled cache reads no claims; who
// looks at the nodes is told.
func TestLargerVolumesAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Storage("20Gi", w.Class("fast", true)))
	w.StorageSystem(world.Stores)
	w.Settle()
	w.Bound(3)
	w.Patch(w.Claim(0), `{"spec":{"resources":{"requests":{"storage":"30Gi"}}}}`, client.FieldOwner("admin"))
	w.Eventually("the volume is larger", func() bool {
		has := w.Claim(0).Status.Capacity["storage"]
		return has.String() == "30Gi"
	})
	w.NothingToDo()
	f, err := reconcile.Look(t.Context(), w.Env.Client, reconcile.Options{Scope: observe.Scope{Namespaces: []string{w.NS}}, Concurrency: 1, Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Caches[0].Standing.Nodes[0]; n.Volume != "30Gi, more than the 20Gi of spec.storage.size" {
		t.Errorf("node 0: %+v", n)
	}
	w.Edit(`spec: {storage: {size: 25Gi}}`)
	w.Settle().Wants(model.Settled, v1.ReasonReady)
	for i, want := range []string{"30Gi", "25Gi", "25Gi"} {
		if q := w.Claim(i).Spec.Resources.Requests["storage"]; q.String() != want {
			t.Errorf("claim %d asks for %s, want %s", i, q.String(), want)
		}
	}
	if n := w.TemplateAsks(); n != "25Gi" {
		t.Errorf("the template asks for %s", n)
	}
}

// Whatever others set in the StatefulSet would be lost with it, and nodes would
// restart: then it is not replaced, though the volumes have grown.
func TestOthersFieldsKeepAStatefulSet(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Storage("1Gi", w.Class("fast", true)))
	w.StorageSystem(world.Stores)
	w.Settle()
	w.Bound(3)
	w.Patch(w.StatefulSet(), `{"spec":{"template":{"metadata":{"annotations":{"restarted":"yes"}}}}}`, client.FieldOwner("hand"))
	w.Settle()
	old := w.StatefulSet().UID
	w.Edit(`spec: {storage: {size: 2Gi}}`)
	w.Settle().Wants(model.Stalled, v1.ReasonImmutableField)
	w.Says("the volumes have grown to 2Gi", "spec.template.metadata.annotations.restarted")
	if w.StatefulSet().UID != old {
		t.Error("replaced")
	}
	w.Patch(w.StatefulSet(), `{"spec":{"template":{"metadata":{"annotations":{"restarted":null}}}}}`, client.FieldOwner("hand"))
	w.Eventually("replaced when it was removed", func() bool {
		w.Pass()
		sts := &appsv1.StatefulSet{}
		err := w.Env.Client.Get(t.Context(), client.ObjectKey{Namespace: w.NS, Name: "cache"}, sts)
		return !apierrors.IsNotFound(err) && sts.UID != old
	})
}

// Only spec.size removes nodes, never a node that is not ready; the claims of
// removed nodes stay (keys are not moved off memcached's nodes, and
// nothing drains before a scale-down: nodes are independent).
func TestSizeAloneScalesDown(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(world.Storage("1Gi", ""), `spec: {size: 6}`)
	w.Settle()
	pod := w.Node(5)
	w.Patch(pod, `{"metadata":{"annotations":{"controlplane.test/ready":"false"}}}`)
	w.Eventually("one node is not ready", func() bool {
		return w.StatefulSet().Status.ReadyReplicas == 5
	})
	f := w.Pass()
	if r := f.Cache(); len(r.Plan.Steps) > 0 || *w.StatefulSet().Spec.Replicas != 6 {
		t.Errorf("a node that is not ready: %+v", r.Plan.Steps)
	}
	f.Wants(model.Progressing, v1.ReasonProgressing)
	w.Edit(`spec: {size: 3}`)
	if got := w.Pass().Changes("StatefulSet"); len(got) != 1 || got[0].From != "6" || got[0].To != "3" {
		t.Errorf("changes: %+v", got)
	}
	w.Settle()
	for i := range 6 {
		w.Claim(i)
	}
	if n := len(w.Nodes()); n != 3 {
		t.Errorf("%d nodes", n)
	}
}

// Whoever may not read StorageClasses, which belong to no namespace, grows
// volumes all the same: the API server knows the classes.
func TestGrowthWithoutSeeingClasses(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	role := w.ShippedRole()
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == storagev1.GroupName })
	c := w.As(role).Product(nil)
	for name, grows := range map[string]bool{"grows": true, "fixed": false} {
		t.Run(name, func(t *testing.T) {
			w := world.Shared(t)
			w.Cache(world.Storage("1Gi", w.Class(name, grows)), `spec: {size: 1}`)
			w.StorageSystem(world.Stores)
			w.Settle()
			w.Bound(1)
			w.Edit(`spec: {storage: {size: 2Gi}}`)
			f := w.Run(c, reconcile.Options{Concurrency: 1})
			if grows {
				f.Wants(model.Progressing, v1.ReasonVolumeResizing)
				return
			}
			f.Wants(model.NotDone, v1.ReasonApplyRejected)
			if m := f.Verdict().Message; !strings.Contains(m, "data-cache-0") || !strings.Contains(m, "must support resize") {
				t.Errorf("message: %s", m)
			}
		})
	}
}
