package plan

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// For returns what a pass does to one cache.
func For(in model.Input) model.Plan {
	p := decide(in)
	for i := range p.Steps {
		p.Steps[i].After = awaited(in, p.Steps[i])
		p.Steps[i].Effects = effects(in, p.Steps[i])
		p.Steps[i].Downgrade = downgrade(p.Steps[i])
	}
	return p
}

// awaited returns what a step depends on, if that exists only on paper.
func awaited(in model.Input, s model.Step) string {
	switch {
	case in.NoNamespace:
		return fmt.Sprintf("namespace %s is created", in.Cache.Namespace)
	case in.OnPaper && s.Target.Kind == model.KindCache:
		return fmt.Sprintf("%s is created", s.Target)
	}
	return ""
}

func decide(in model.Input) model.Plan {
	if in.Cache.DeletionTimestamp != nil {
		return finish(in)
	}
	for _, gate := range cacheGates {
		if hold, held := gate(in); held {
			return model.Plan{Holds: []model.Hold{hold}}
		}
	}
	d := draft{in: in}
	d.addFinalizer()
	children, holds := childrenOf(in)
	d.Holds = append(d.Holds, holds...)
	for _, c := range children {
		d.add(c)
	}
	d.grow()
	d.unstick()
	return d.Plan
}

// draft is a plan under construction.
type draft struct {
	in model.Input
	model.Plan
}

// addFinalizer plans our finalizer before anything is created for the cache.
func (d *draft) addFinalizer() {
	intent := resources.Finalizer(d.in.Cache, "")
	changes := fields.Compare(intent, d.in.Cache, "")
	if len(changes) == 0 {
		return
	}
	d.Steps = append(d.Steps, model.Step{
		Action: model.ActionChange, Target: cacheRef(d.in.Cache), Intent: intent, Live: d.in.Cache,
		Reason: "finalizer", Changes: changes,
	})
}

// add plans one child. The child is withheld, created, changed, deleted or left
// alone.
func (d *draft) add(c child) {
	in := d.in
	if c.intent == nil && c.err == nil {
		if c.live != nil && metav1.IsControlledBy(c.live, in.Cache) && c.live.GetDeletionTimestamp() == nil && !d.keepsNodes() {
			d.Steps = append(d.Steps, model.Step{Action: model.ActionDelete, Target: c.ref, Live: c.live, Reason: c.unwanted})
		}
		return
	}
	for _, gate := range childGates {
		if hold, held := gate(in, c); held {
			d.Holds = append(d.Holds, hold)
			return
		}
	}
	if c.live == nil {
		d.Steps = append(d.Steps, model.Step{Action: model.ActionCreate, Target: c.ref, Intent: c.intent, Reason: reused(in, c)})
		return
	}
	d.Holds = append(d.Holds, keepImmutable(c)...)
	changes := fields.Compare(c.intent, c.live, "")
	if left := fields.StraysOf(c.intent, c.live); len(changes) == 0 && left.Empty() {
		return
	}
	if found := strays(in, c); !found.Empty() {
		step, owned := ownStrays(c, found)
		d.Steps = append(d.Steps, step)
		changes = fields.Compare(c.intent, owned, "")
	}
	d.Steps = append(d.Steps, model.Step{
		Action: model.ActionChange, Target: c.ref, Intent: c.intent, Live: c.live,
		Reason: changeReason(in, c, changes), Changes: changes, Restarts: restarts(c, changes),
	})
}

// keepsNodes reports whether the StatefulSet is withheld and has several nodes. It
// then keeps these nodes for now, so they keep their disruption budget too.
func (d *draft) keepsNodes() bool {
	sts := d.in.Live.Owned(d.in.Cache).StatefulSet
	return sts != nil && *sts.Spec.Replicas > 1 && d.holds(model.KindStatefulSet)
}

// holds reports whether a child of this kind is withheld as a whole.
func (d *draft) holds(kind model.Kind) bool {
	return slices.ContainsFunc(d.Holds, func(h model.Hold) bool { return h.Target.Kind == kind && !h.Partial })
}

func changeReason(in model.Input, c child, changes []fields.Change) string {
	if !metav1.IsControlledBy(c.live, in.Cache) {
		return "taken over by annotation " + v1.AdoptByAnnotation
	}
	for _, change := range changes {
		if strings.HasSuffix(change.Path, `["`+v1.ConfigHashAnnotation+`"]`) && change.From != "" && change.To != "" {
			return fmt.Sprintf("content of ConfigMap %s/%s changed", in.Cache.Namespace, in.Cache.Spec.Config.Name)
		}
	}
	if len(changes) == 1 {
		return changes[0].Path + " differs"
	}
	paths := make([]string, 0, len(changes))
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	if len(paths) > 2 {
		return fmt.Sprintf("%s, %s and %d more fields differ", paths[0], paths[1], len(paths)-2)
	}
	return strings.Join(paths, " and ") + " differ"
}

// restarts counts the nodes that a changed pod template makes the StatefulSet
// controller replace.
func restarts(c child, changes []fields.Change) int32 {
	if !changesTemplate(changes) {
		return 0
	}
	return int32(len(replaced(c.live.(*appsv1.StatefulSet), c.wanted)))
}
