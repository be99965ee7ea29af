package world

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Storage is a cache with volumes of a size and a class; "" is the default class.
func Storage(size, class string) string {
	if class != "" {
		class = ", storageClassName: " + class
	}
	return fmt.Sprintf("spec: {engine: Custom, image: registry.example.com/team/cache, storage: {size: %s%s}}", size, class)
}

// Class makes a StorageClass of the test's own and returns its name.
func (w *World) Class(name string, grows bool) string {
	w.Helper()
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.NS + "-" + name}, Provisioner: "test.example.com/none", AllowVolumeExpansion: &grows}
	w.CreateGlobal(c)
	return c.Name
}

// StorageSystem plays the volumes: no storage system runs here. Every claim is
// bound at once, and has what it asks for when grows says so.
func (w *World) StorageSystem(grows func(claim string) bool) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			list := &corev1.PersistentVolumeClaimList{}
			if w.Env.Client.List(ctx, list, client.InNamespace(w.NS)) != nil {
				continue
			}
			for i := range list.Items {
				claim := &list.Items[i]
				asks, has := claim.Spec.Resources.Requests["storage"], claim.Status.Capacity["storage"]
				if claim.Status.Phase == corev1.ClaimBound && (asks.Cmp(has) == 0 || !grows(claim.Name)) {
					continue
				}
				claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{"storage": asks}
				_ = w.Env.Client.Status().Update(ctx, claim)
			}
		}
	}()
}

// Stores is a storage system that grows every volume.
func Stores(string) bool { return true }

// Claim is that of a node.
func (w *World) Claim(ordinal int) *corev1.PersistentVolumeClaim {
	w.Helper()
	return Get(w, fmt.Sprintf("data-%s-%d", w.Name, ordinal), &corev1.PersistentVolumeClaim{})
}

// ClaimAsks is the size that a node's claim asks for.
func (w *World) ClaimAsks(ordinal int) string {
	w.Helper()
	q := w.Claim(ordinal).Spec.Resources.Requests["storage"]
	return q.String()
}

// ClaimHas is the size of a node's volume.
func (w *World) ClaimHas(ordinal int) string {
	w.Helper()
	q := w.Claim(ordinal).Status.Capacity["storage"]
	return q.String()
}

// TemplateAsks is the size that the StatefulSet makes claims of.
func (w *World) TemplateAsks() string {
	w.Helper()
	q := w.StatefulSet().Spec.VolumeClaimTemplates[0].Spec.Resources.Requests["storage"]
	return q.String()
}

// Bound waits for the claims of a settled cache.
func (w *World) Bound(nodes int) {
	w.Helper()
	w.Eventually("the claims are bound", func() bool {
		list := &corev1.PersistentVolumeClaimList{}
		w.List(list)
		count := 0
		for _, c := range list.Items {
			if c.Status.Phase == corev1.ClaimBound {
				count++
			}
		}
		return count == nodes
	})
}
