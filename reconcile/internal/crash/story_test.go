package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// story is something that happens to a cache, which a run has to make good.
type story struct {
	name string
	// before makes the namespace of before it happens, and happens makes it
	// happen.
	before, happens func(w *world.World)
	// wait: the run is one of many passes, with --wait.
	wait bool
	// hooks of the deletion that the run has to make.
	hooks []string
}

func stories() []story {
	settled := func(said ...string) func(*world.World) {
		return func(w *world.World) {
			w.Cache(said...)
			w.Settle()
		}
	}
	edited := func(patch string) func(*world.World) {
		return func(w *world.World) { w.Edit(patch) }
	}
	return []story{
		{name: "create", before: func(*world.World) {}, happens: func(w *world.World) { w.Cache() }},
		{name: "scale", before: settled(), happens: edited(`spec: {size: 4}`)},
		{name: "version", before: settled(), happens: edited(`spec: {version: "1.6.39"}`)},
		{name: "drift", before: settled(), happens: drifted},
		{name: "config", before: configured, happens: func(w *world.World) {
			w.Patch(world.Get(w, "cfg", &corev1.ConfigMap{}), `{"data":{"a":"2"}}`)
		}},
		{name: "storage growth", wait: true, before: withVolumes, happens: edited(`spec: {storage: {size: 2Gi}}`)},
		{name: "stuck rollout", before: stuck, happens: corrected},
		{name: "adoption", before: ownerless, happens: func(w *world.World) { w.Cache() }},
		{name: "deletion", wait: true, hooks: []string{"a", "b"}, before: settled(world.Hooks(world.HookGood, world.HookGood), `spec: {deletion: {drainSeconds: 1}}`), happens: func(w *world.World) { w.Remove() }},
	}
}

func drifted(w *world.World) {
	as := client.FieldOwner("somebody")
	w.Patch(w.ClientService(), `{"metadata":{"labels":{"app.kubernetes.io/name":"other"}}}`, as)
	w.Patch(w.NodesService(), `{"spec":{"publishNotReadyAddresses":false}}`, as)
	w.Delete(w.Budget())
}

func configured(w *world.World) {
	w.Create(&corev1.ConfigMap{ObjectMeta: w.Meta("cfg"), Data: map[string]string{"a": "1"}})
	w.Cache(`spec: {config: {name: cfg}}`)
	w.Settle()
}

func withVolumes(w *world.World) {
	w.Cache(world.Storage("1Gi", w.Class("fast", true)))
	w.StorageSystem(world.Stores)
	w.Settle()
	w.Bound(3)
}

// stuck is a rollout of an OrderedReady StatefulSet that stands still at a
// broken node.
func stuck(w *world.World) {
	w.Create(w.SomeStatefulSet())
	w.Cache()
	w.Passing("adopted and rolled out", func() bool { return w.Stored().Status.CurrentVersion == "1.6.38" })
	w.Edit(`spec: {version: broken}`)
	w.UntilSays("cache-2: ImagePullBackOff")
}

// corrected is the rollout back to what runs, as far as a first pass takes it:
// the next one deletes the broken node.
func corrected(w *world.World) {
	w.Edit(`spec: {version: "1.6.38"}`)
	w.Pass()
	w.Eventually("the change is observed", func() bool {
		s := w.StatefulSet()
		return s.Status.ObservedGeneration == s.Generation
	})
}

// ownerless are the children of a former cache that was deleted without them.
func ownerless(w *world.World) {
	for _, name := range []string{"cache", "nodes-cache"} {
		theirs := w.SomeService(name)
		w.Adoptable(theirs)
		w.Create(theirs)
	}
	theirs := w.SomeStatefulSet()
	theirs.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	w.Create(theirs)
	w.Eventually("nodes run", func() bool { return w.StatefulSet().Status.ReadyReplicas == 3 })
}
