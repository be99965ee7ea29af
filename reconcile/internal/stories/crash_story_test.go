package stories_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
)

// story is something that happens to a cache, which a run has to make good.
type story struct {
	name string
	// before makes the namespace of before it happens, and happens makes it
	// happen.
	before, happens func(t *testing.T, ns string)
	// wait: the run is one of many passes, with --wait.
	wait bool
	// hooks of the deletion that the run has to make.
	hooks []string
}

func stories() []story {
	settled := func(change ...func(*v1.ClusteredCache)) func(*testing.T, string) {
		return func(t *testing.T, ns string) {
			create(t, ns, "cache", change...)
			settle(t, ns)
		}
	}
	edited := func(change func(*v1.ClusteredCache)) func(*testing.T, string) {
		return func(t *testing.T, ns string) { update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, change) }
	}
	drained := func(c *v1.ClusteredCache) {
		withHooks(imageGood, imageGood)(c)
		c.Spec.Deletion.DrainSeconds = 1
	}
	return []story{
		{name: "create", before: func(*testing.T, string) {}, happens: func(t *testing.T, ns string) { create(t, ns, "cache") }},
		{name: "scale", before: settled(), happens: edited(func(c *v1.ClusteredCache) { c.Spec.Size = 4 })},
		{name: "version", before: settled(), happens: edited(func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.39" })},
		{name: "drift", before: settled(), happens: drifted},
		{name: "config", before: configured, happens: func(t *testing.T, ns string) {
			patch(t, get(t, ns, "cfg", &corev1.ConfigMap{}), `{"data":{"a":"2"}}`)
		}},
		{name: "storage growth", wait: true, before: withVolumes, happens: edited(func(c *v1.ClusteredCache) { c.Spec.Storage.Size = quantity("2Gi") })},
		{name: "stuck rollout", before: stuck, happens: corrected},
		{name: "adoption", before: ownerless, happens: func(t *testing.T, ns string) { create(t, ns, "cache") }},
		{name: "deletion", wait: true, hooks: []string{"a", "b"}, before: settled(drained), happens: func(t *testing.T, ns string) { remove(t, ns, "cache") }},
	}
}

func drifted(t *testing.T, ns string) {
	as := client.FieldOwner("somebody")
	patch(t, get(t, ns, "cache", &corev1.Service{}), `{"metadata":{"labels":{"app.kubernetes.io/name":"other"}}}`, as)
	patch(t, get(t, ns, "nodes-cache", &corev1.Service{}), `{"spec":{"publishNotReadyAddresses":false}}`, as)
	if err := env.Client.Delete(t.Context(), get(t, ns, "cache", &policyv1.PodDisruptionBudget{})); err != nil {
		t.Fatal(err)
	}
}

func configured(t *testing.T, ns string) {
	mustCreate(t, &corev1.ConfigMap{ObjectMeta: meta(ns, "cfg"), Data: map[string]string{"a": "1"}})
	create(t, ns, "cache", func(c *v1.ClusteredCache) { c.Spec.Config = &v1.ConfigReference{Name: "cfg"} })
	settle(t, ns)
}

func withVolumes(t *testing.T, ns string) {
	create(t, ns, "cache", withStorage("1Gi", class(t, ns, "fast", true)))
	storageSystem(t, ns, func(string) bool { return true })
	settle(t, ns)
	bound(t, ns, 3)
}

// stuck is a rollout of an OrderedReady StatefulSet that stands still at a
// broken node.
func stuck(t *testing.T, ns string) {
	orderedReady(t, ns)
	c := create(t, ns, "cache")
	testenv.Eventually(t, "adopted and rolled out", func() bool {
		pass(t, ns)
		return get(t, ns, "cache", &v1.ClusteredCache{}).Status.CurrentVersion == "1.6.38"
	})
	update(t, c, func(c *v1.ClusteredCache) { c.Spec.Version = "broken" })
	testenv.Eventually(t, "the last node is broken", func() bool {
		pass(t, ns)
		return strings.Contains(message(t, ns), "cache-2: ImagePullBackOff")
	})
}

// corrected is the rollout back to what runs, as far as a first pass takes it:
// the next one deletes the broken node.
func corrected(t *testing.T, ns string) {
	update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache")}, func(c *v1.ClusteredCache) { c.Spec.Version = "1.6.38" })
	pass(t, ns)
	testenv.Eventually(t, "the change is observed", func() bool {
		s := get(t, ns, "cache", &appsv1.StatefulSet{})
		return s.Status.ObservedGeneration == s.Generation
	})
}

// ownerless are the children of a former cache that was deleted without them.
func ownerless(t *testing.T, ns string) {
	for _, name := range []string{"cache", "nodes-cache"} {
		theirs := service(ns, name)
		theirs.Annotations = map[string]string{v1.AdoptByAnnotation: "cache"}
		mustCreate(t, theirs)
	}
	theirs := madeByHand(ns)
	theirs.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	mustCreate(t, theirs)
	testenv.Eventually(t, "nodes run", func() bool { return get(t, ns, "cache", &appsv1.StatefulSet{}).Status.ReadyReplicas == 3 })
}
