package scenario

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/plan"
	"example.com/clusteredcache/reconcile/resources"
)

// Now is the time in every scenario.
var Now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Input returns what a pass would observe of the scenario.
func (s Scenario) Input() model.Input {
	in := model.Input{Cache: s.Cache, Now: Now}
	if s.Cache.Spec.Config != nil {
		in.Config.Missing = s.ConfigMap == nil
		if s.ConfigMap != nil {
			in.Config.Hash = resources.ConfigHash(s.ConfigMap)
		}
	}
	nodes, volumes := &health.Nodes{}, &model.Volumes{Classes: map[string]model.Expansion{}}
	for _, o := range s.Live {
		switch o := o.(type) {
		case *batchv1.Job:
			if in.Deletion.Jobs == nil {
				in.Deletion.Jobs = map[string]*batchv1.Job{}
			}
			in.Deletion.Jobs[o.Name] = o
		case *corev1.Pod:
			if s.Cache.DeletionTimestamp != nil {
				in.Deletion.Pods = append(in.Deletion.Pods, o)
			} else {
				nodes.Pods = append(nodes.Pods, o)
			}
		case *corev1.Namespace:
			in.Deletion.NamespaceTerminating = o.DeletionTimestamp != nil
		case *corev1.PersistentVolumeClaim:
			volumes.Claims = append(volumes.Claims, o)
		case *appsv1.StatefulSet:
			in.Live.StatefulSet = o
		case *policyv1.PodDisruptionBudget:
			in.Live.DisruptionBudget = o
		case *storagev1.StorageClass:
			volumes.Classes[o.Name] = model.ClassFixed
			if o.AllowVolumeExpansion != nil && *o.AllowVolumeExpansion {
				volumes.Classes[o.Name] = model.ClassGrows
			}
		case *corev1.Service:
			if o.Name == s.Cache.Name {
				in.Live.ClientService = o
			} else {
				in.Live.NodesService = o
			}
		}
	}
	if in.Live.StatefulSet == nil {
		for _, claim := range volumes.Claims {
			in.OldClaims = append(in.OldClaims, claim.Name)
		}
	}
	if plan.NeedsNodes(in) {
		in.Nodes = nodes
	}
	if plan.NeedsVolumes(in) {
		in.Volumes = volumes
	}
	return in
}
