package stories_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
	"example.com/clusteredcache/reconcile/report"
)

// class makes a StorageClass of the test's own.
func class(t *testing.T, ns, name string, grows bool) string {
	t.Helper()
	c := &storagev1.StorageClass{ObjectMeta: meta("", ns+"-"+name), Provisioner: "test.example.com/none", AllowVolumeExpansion: &grows}
	mustCreate(t, c)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), c) })
	return c.Name
}

// storageSystem plays the volumes: no storage system runs here. Every claim is
// bound at once, and has what it asks for when grows says so.
func storageSystem(t *testing.T, ns string, grows func(claim string) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			list := &corev1.PersistentVolumeClaimList{}
			if env.Client.List(ctx, list, client.InNamespace(ns)) != nil {
				continue
			}
			for i := range list.Items {
				claim := &list.Items[i]
				asks, has := claim.Spec.Resources.Requests["storage"], claim.Status.Capacity["storage"]
				if claim.Status.Phase == corev1.ClaimBound && (asks.Cmp(has) == 0 || !grows(claim.Name)) {
					continue
				}
				claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{"storage": asks}
				_ = env.Client.Status().Update(ctx, claim)
			}
		}
	}()
}

func withStorage(size, class string) func(*v1.ClusteredCache) {
	return func(c *v1.ClusteredCache) {
		c.Spec.Engine, c.Spec.Image = v1.EngineCustom, "registry.example.com/team/cache"
		c.Spec.Storage = &v1.StorageSpec{Size: quantity(size)}
		if class != "" {
			c.Spec.Storage.StorageClassName = &class
		}
	}
}

// uids are the uids of a cache's pods by name.
func uids(t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	list := &corev1.PodList{}
	if err := env.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	m := map[string]types.UID{}
	for _, p := range list.Items {
		m[p.Name] = p.UID
	}
	return m
}

func claim(t *testing.T, ns string, ordinal int) *corev1.PersistentVolumeClaim {
	t.Helper()
	return get(t, ns, fmt.Sprintf("data-cache-%d", ordinal), &corev1.PersistentVolumeClaim{})
}

func templateSize(t *testing.T, ns string) string {
	t.Helper()
	sts := get(t, ns, "cache", &appsv1.StatefulSet{})
	q := sts.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests["storage"]
	return q.String()
}

// bound waits for the claims of a settled cache.
func bound(t *testing.T, ns string, nodes int) {
	t.Helper()
	testenv.Eventually(t, "the claims are bound", func() bool {
		list := &corev1.PersistentVolumeClaimList{}
		if err := env.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, c := range list.Items {
			if c.Status.Phase == corev1.ClaimBound {
				count++
			}
		}
		return count == nodes
	})
}

// Volumes grow from 1Gi to 2Gi: the claims first, and when the storage system
// has grown them, the StatefulSet is made anew around its running nodes. Until
// then the status says how many are done.
func TestVolumesGrow(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withStorage("1Gi", class(t, ns, "fast", true)))
	hold := make(chan struct{})
	storageSystem(t, ns, func(claim string) bool {
		select {
		case <-hold:
			return true
		default:
			return claim != "data-cache-2"
		}
	})
	settle(t, ns)
	bound(t, ns, 3)
	before, revision := uids(t, ns), get(t, ns, "cache", &appsv1.StatefulSet{}).Status.UpdateRevision
	old := get(t, ns, "cache", &appsv1.StatefulSet{}).UID

	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("2Gi") })
	f := pass(t, ns)
	wantVerdict(t, f, "cache", model.Progressing, v1.ReasonVolumeResizing)
	if got := changesOf(f, "cache", "PersistentVolumeClaim"); len(got) != 1 || got[0].From != `"1Gi"` || got[0].To != `"2Gi"` {
		t.Errorf("changes of the first claim: %+v", got)
	}
	testenv.Eventually(t, "two volumes have grown", func() bool {
		pass(t, ns)
		return strings.Contains(message(t, ns), "2 of 3 volumes have grown to 2Gi")
	})
	if n := templateSize(t, ns); n != "1Gi" {
		t.Errorf("the template asks for %s already", n)
	}
	close(hold)
	testenv.Eventually(t, "the third has grown", func() bool {
		has := claim(t, ns, 2).Status.Capacity["storage"]
		return has.String() == "2Gi"
	})
	// A dry run shows what it cannot try, and leaves the StatefulSet there.
	dry := runWith(t, client.NewDryRunClient(productClient(t, nil)), reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})
	if o := reportOf(dry, "cache").Outcomes; len(o) != 1 || o[0].Step.Action != model.ActionReplace || o[0].Result != model.Estimated {
		t.Errorf("dry run: %+v", o)
	}
	if sts := get(t, ns, "cache", &appsv1.StatefulSet{}); sts.UID != old || sts.DeletionTimestamp != nil {
		t.Error("a dry run replaced it")
	}
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	sts := get(t, ns, "cache", &appsv1.StatefulSet{})
	if n := templateSize(t, ns); n != "2Gi" || sts.UID == old {
		t.Errorf("the template asks for %s, same StatefulSet: %v", n, sts.UID == old)
	}
	if sts.Status.UpdateRevision != revision || sts.Status.CurrentRevision != revision {
		t.Errorf("revision %s became %s", revision, sts.Status.UpdateRevision)
	}
	time.Sleep(2 * time.Second) // a controller that wanted to replace nodes would
	if d := cmpDiff(before, uids(t, ns)); d != "" {
		t.Errorf("nodes restarted: %s", d)
	}
	wantNothingToDo(t, ns)
	// The new StatefulSet does what one does: nodes come and go, claims are kept.
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Size = 4 })
	settle(t, ns)
	q := claim(t, ns, 3).Spec.Resources.Requests["storage"]
	if q.String() != "2Gi" {
		t.Errorf("the new node asks for %s", q.String())
	}
}

// A pass that dies between deleting the StatefulSet and making it anew is made
// good by the next, and the nodes run on.
func TestReplacementThatWasCutShort(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withStorage("1Gi", class(t, ns, "fast", true)))
	storageSystem(t, ns, func(string) bool { return true })
	settle(t, ns)
	bound(t, ns, 3)
	before := uids(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("2Gi") })
	lift := refuseNewStatefulSets(t, ns)
	testenv.Eventually(t, "the new StatefulSet is refused", func() bool {
		f := pass(t, ns)
		return verdict(t, f, "cache").Reason == v1.ReasonApplyRejected
	})
	gone(t, ns, "cache", &appsv1.StatefulSet{})
	lift()
	testenv.Eventually(t, "the next pass goes on", func() bool {
		pass(t, ns)
		return env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "cache"}, &appsv1.StatefulSet{}) == nil
	})
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	if n := templateSize(t, ns); n != "2Gi" {
		t.Errorf("the template asks for %s", n)
	}
	if d := cmpDiff(before, uids(t, ns)); d != "" {
		t.Errorf("nodes restarted: %s", d)
	}
}

// A class that does not grow, a smaller size, and another class: held, named
// with old and new value and the way out, and the rest of the edit
// goes through.
func TestStorageThatCannotChange(t *testing.T) {
	ns := env.Namespace(t)
	fixed := class(t, ns, "fixed", false)
	storageSystem(t, ns, func(string) bool { return true })
	c := create(t, ns, "cache", withStorage("2Gi", fixed))
	settle(t, ns)
	bound(t, ns, 3)
	size := int32(3)
	for _, tc := range []struct {
		name   string
		change func(*v1.StorageSpec)
		says   []string
	}{
		{"a class that does not grow", func(s *v1.StorageSpec) { s.Size = quantity("3Gi") },
			[]string{"spec.storage.size cannot change from 2Gi to 3Gi", "StorageClass " + fixed + " does not let volumes grow", "Set it back"}},
		{"smaller", func(s *v1.StorageSpec) { s.Size = quantity("1Gi") },
			[]string{"spec.storage.size cannot change from 2Gi to 1Gi", "set it back", "delete statefulset cache --cascade=orphan"}},
		{"another class", func(s *v1.StorageSpec) { s.StorageClassName = new("faster") },
			[]string{"spec.storage.storageClassName cannot change from " + fixed + " to faster", "set it back", "delete statefulset cache --cascade=orphan"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			size++
			update(t, c, func(c *v1.ClusteredCache) {
				c.Spec.Storage = &v1.StorageSpec{Size: quantity("2Gi"), StorageClassName: &fixed}
				tc.change(c.Spec.Storage)
				c.Spec.Size = size
			})
			wantVerdict(t, pass(t, ns), "cache", model.Stalled, v1.ReasonImmutableField)
			wantMessage(t, ns, tc.says...)
			if sts := get(t, ns, "cache", &appsv1.StatefulSet{}); *sts.Spec.Replicas != size || templateSize(t, ns) != "2Gi" {
				t.Errorf("%d replicas of %s", *sts.Spec.Replicas, templateSize(t, ns))
			}
			if q := claim(t, ns, 0).Spec.Resources.Requests["storage"]; q.String() != "2Gi" {
				t.Errorf("the claim asks for %s", q.String())
			}
		})
	}
}

// Storage for a cache that has none, and a larger size in the same edit: the
// one is held and named, the other goes through, other caches are done, and a
// run ends as partial.
func TestStorageIsAdded(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withStorage("1Gi", ""), func(c *v1.ClusteredCache) { c.Spec.Storage = nil })
	create(t, ns, "other")
	settle(t, ns)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Storage, c.Spec.Size = &v1.StorageSpec{Size: quantity("5Gi")}, 4 })
	update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "other")}, func(c *v1.ClusteredCache) { c.Spec.Size = 2 })
	f := settle(t, ns)
	wantVerdict(t, f, "cache", model.Stalled, v1.ReasonImmutableField)
	wantVerdict(t, f, "other", model.Settled, v1.ReasonReady)
	wantMessage(t, ns, "spec.storage cannot change from none to 5Gi")
	if n := *get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.Replicas; n != 4 {
		t.Errorf("%d replicas", n)
	}
	if s := report.Summarize(f).Caches; s.Stalled != 1 || s.Settled != 1 {
		t.Errorf("%+v", s)
	}
}

// A volume that someone made larger by hand is left alone, now and when the
// others grow. A pass over a settled cache reads no claims; who
// looks at the nodes is told.
func TestLargerVolumesAreLeftAlone(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withStorage("20Gi", class(t, ns, "fast", true)))
	storageSystem(t, ns, func(string) bool { return true })
	settle(t, ns)
	bound(t, ns, 3)
	patch(t, claim(t, ns, 0), `{"spec":{"resources":{"requests":{"storage":"30Gi"}}}}`, client.FieldOwner("admin"))
	testenv.Eventually(t, "the volume is larger", func() bool {
		has := claim(t, ns, 0).Status.Capacity["storage"]
		return has.String() == "30Gi"
	})
	wantNothingToDo(t, ns)
	f, err := reconcile.Look(t.Context(), env.Client, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1, Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Caches[0].Standing.Nodes[0]; n.Volume != "30Gi, more than the 20Gi of spec.storage.size" {
		t.Errorf("node 0: %+v", n)
	}
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("25Gi") })
	wantVerdict(t, settle(t, ns), "cache", model.Settled, v1.ReasonReady)
	for i, want := range []string{"30Gi", "25Gi", "25Gi"} {
		if q := claim(t, ns, i).Spec.Resources.Requests["storage"]; q.String() != want {
			t.Errorf("claim %d asks for %s, want %s", i, q.String(), want)
		}
	}
	if n := templateSize(t, ns); n != "25Gi" {
		t.Errorf("the template asks for %s", n)
	}
}

// Whatever others set in the StatefulSet would be lost with it, and nodes would
// restart: then it is not replaced, though the volumes have grown.
func TestOthersFieldsKeepAStatefulSet(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withStorage("1Gi", class(t, ns, "fast", true)))
	storageSystem(t, ns, func(string) bool { return true })
	settle(t, ns)
	bound(t, ns, 3)
	patch(t, get(t, ns, "cache", &appsv1.StatefulSet{}), `{"spec":{"template":{"metadata":{"annotations":{"restarted":"yes"}}}}}`, client.FieldOwner("hand"))
	settle(t, ns)
	old := get(t, ns, "cache", &appsv1.StatefulSet{}).UID
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("2Gi") })
	wantVerdict(t, settle(t, ns), "cache", model.Stalled, v1.ReasonImmutableField)
	wantMessage(t, ns, "the volumes have grown to 2Gi", "spec.template.metadata.annotations.restarted")
	if get(t, ns, "cache", &appsv1.StatefulSet{}).UID != old {
		t.Error("replaced")
	}
	patch(t, get(t, ns, "cache", &appsv1.StatefulSet{}), `{"spec":{"template":{"metadata":{"annotations":{"restarted":null}}}}}`, client.FieldOwner("hand"))
	testenv.Eventually(t, "replaced when it was removed", func() bool {
		pass(t, ns)
		sts := &appsv1.StatefulSet{}
		err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "cache"}, sts)
		return !apierrors.IsNotFound(err) && sts.UID != old
	})
}

// Only spec.size removes nodes, never a node that is not ready; the claims of
// removed nodes stay (keys are not moved off memcached's nodes, and
// nothing drains before a scale-down: nodes are independent).
func TestSizeAloneScalesDown(t *testing.T) {
	ns := env.Namespace(t)
	c := create(t, ns, "cache", withStorage("1Gi", ""), func(c *v1.ClusteredCache) { c.Spec.Size = 6 })
	settle(t, ns)
	pod := get(t, ns, "cache-5", &corev1.Pod{})
	patch(t, pod, `{"metadata":{"annotations":{"controlplane.test/ready":"false"}}}`)
	testenv.Eventually(t, "one node is not ready", func() bool {
		return get(t, ns, "cache", &appsv1.StatefulSet{}).Status.ReadyReplicas == 5
	})
	f := pass(t, ns)
	if r := reportOf(f, "cache"); len(r.Plan.Steps) > 0 || *get(t, ns, "cache", &appsv1.StatefulSet{}).Spec.Replicas != 6 {
		t.Errorf("a node that is not ready: %+v", r.Plan.Steps)
	}
	wantVerdict(t, f, "cache", model.Progressing, v1.ReasonProgressing)
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Size = 3 })
	if got := changesOf(pass(t, ns), "cache", "StatefulSet"); len(got) != 1 || got[0].From != "6" || got[0].To != "3" {
		t.Errorf("changes: %+v", got)
	}
	settle(t, ns)
	for i := range 6 {
		claim(t, ns, i)
	}
	if n := len(uids(t, ns)); n != 3 {
		t.Errorf("%d nodes", n)
	}
}

// Whoever may not read StorageClasses, which belong to no namespace, grows
// volumes all the same: the API server knows the classes.
func TestGrowthWithoutSeeingClasses(t *testing.T) {
	role := shippedRole(t)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == storagev1.GroupName })
	c := as(t, "unclassed", role)
	for name, grows := range map[string]bool{"grows": true, "fixed": false} {
		t.Run(name, func(t *testing.T) {
			ns := env.Namespace(t)
			cache := create(t, ns, "cache", withStorage("1Gi", class(t, ns, name, grows)), func(c *v1.ClusteredCache) { c.Spec.Size = 1 })
			storageSystem(t, ns, func(string) bool { return true })
			settle(t, ns)
			bound(t, ns, 1)
			update(t, cache, func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("2Gi") })
			f := runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 1})
			if grows {
				wantVerdict(t, f, "cache", model.Progressing, v1.ReasonVolumeResizing)
				return
			}
			wantVerdict(t, f, "cache", model.NotDone, v1.ReasonApplyRejected)
			if m := verdict(t, f, "cache").Message; !strings.Contains(m, "data-cache-0") || !strings.Contains(m, "must support resize") {
				t.Errorf("message: %s", m)
			}
		})
	}
}
