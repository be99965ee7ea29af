package plan

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/resources"
)

// For says what a pass does to one cache.
func For(in Input) Plan {
	p := decide(in)
	for i := range p.Steps {
		p.Steps[i].After = after(in, p.Steps[i])
		p.Steps[i].Effects = effects(in, p.Steps[i])
		p.Steps[i].Downgrade = downgrade(p.Steps[i])
	}
	return p
}

// after is what a step depends on that exists only on paper.
func after(in Input, s Step) string {
	switch {
	case in.NoNamespace:
		return fmt.Sprintf("namespace %s is created", in.Cache.Namespace)
	case in.OnPaper && s.Target.Kind == v1.Kind:
		return fmt.Sprintf("%s is created", s.Target)
	}
	return ""
}

func decide(in Input) Plan {
	if in.Cache.DeletionTimestamp != nil {
		return finish(in)
	}
	for _, gate := range cacheGates {
		if hold, held := gate(in); held {
			return Plan{Holds: []Hold{hold}}
		}
	}
	p := Plan{Steps: finalize(in)}
	children, holds := childrenOf(in)
	p.Holds = append(p.Holds, holds...)
	for _, c := range children {
		p.add(in, c)
	}
	p.grow(in)
	p.Steps = append(p.Steps, unstick(in, p)...)
	return p
}

// finalize puts our finalizer on the cache before anything is made for it.
func finalize(in Input) []Step {
	intent := resources.Finalizer(in.Cache, "")
	changes := fields.Compare(intent, in.Cache, "")
	if len(changes) == 0 {
		return nil
	}
	return []Step{{
		Action: ActionChange, Target: cacheRef(in.Cache), Intent: intent, Live: in.Cache,
		Reason: "finalizer", Changes: changes,
	}}
}

// add plans one child: withheld, created, changed, deleted or left alone.
func (p *Plan) add(in Input, c child) {
	if c.intent == nil && c.err == nil {
		if c.live != nil && isControlledBy(c.live, in.Cache) && c.live.GetDeletionTimestamp() == nil && !p.keepsNodes(in) {
			p.Steps = append(p.Steps, Step{Action: ActionDelete, Target: c.ref, Live: c.live, Reason: c.unwanted})
		}
		return
	}
	for _, gate := range childGates {
		if hold, held := gate(in, c); held {
			p.Holds = append(p.Holds, hold)
			return
		}
	}
	if c.live == nil {
		p.Steps = append(p.Steps, Step{Action: ActionCreate, Target: c.ref, Intent: c.intent, Reason: reused(in, c)})
		return
	}
	p.Holds = append(p.Holds, keepImmutable(c)...)
	changes := fields.Compare(c.intent, c.live, "")
	if left := fields.StraysOf(c.intent, c.live); len(changes) == 0 && left.Empty() {
		return
	}
	if found := strays(in, c); !found.Empty() {
		step, after := own(c, found)
		p.Steps = append(p.Steps, step)
		changes = fields.Compare(c.intent, after, "")
	}
	p.Steps = append(p.Steps, Step{
		Action: ActionChange, Target: c.ref, Intent: c.intent, Live: c.live,
		Reason: reason(in, c, changes), Changes: changes, Restarts: restarts(c, changes),
	})
}

// keepsNodes: a StatefulSet that is held keeps its nodes for now, whatever the
// spec says, and with them what protects them.
func (p *Plan) keepsNodes(in Input) bool {
	sts := in.Live.Owned(in.Cache).StatefulSet
	return sts != nil && *sts.Spec.Replicas > 1 && p.holds("StatefulSet")
}

// holds tells whether a child is withheld as a whole; some gates withhold but
// a field.
func (p *Plan) holds(kind string) bool {
	return slices.ContainsFunc(p.Holds, func(h Hold) bool {
		return h.Target.Kind == kind && h.Gate != "immutable" && h.Gate != "growth"
	})
}

func reason(in Input, c child, changes []fields.Change) string {
	if !isControlledBy(c.live, in.Cache) {
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
	for _, change := range changes {
		if strings.HasPrefix(change.Path, "spec.template.") && change.From != change.To {
			return int32(len(replaced(c.live.(*appsv1.StatefulSet), c.wanted)))
		}
	}
	return 0
}
