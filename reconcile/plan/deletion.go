package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// checklist is what must be done, in this order, before our finalizer is removed
// from a cache that is being deleted. An item reports whether it keeps the cache in
// this pass. The first item that keeps it decides. The progress of a deletion is
// read from the cluster, so after a pass that was killed the next one continues.
var checklist = []func(*deletion) bool{
	(*deletion).suspended,
	(*deletion).orphaned,
	(*deletion).inForeground,
	(*deletion).draining,
	(*deletion).runningHooks,
}

// deletion is a cache on its way through the checklist.
type deletion struct {
	model.Input
	plan  model.Plan
	hooks []hook
}

// finish plans the next step of a deletion.
func finish(in model.Input) model.Plan {
	if !slices.Contains(in.Cache.Finalizers, v1.Finalizer) {
		return model.Plan{}
	}
	d := &deletion{Input: in, hooks: hooksOf(in)}
	for _, keeps := range checklist {
		if keeps(d) {
			return d.plan
		}
	}
	d.finalize(d.skippedHooks())
	return d.plan
}

func (d *deletion) hold(class model.Class, reason, message string) {
	d.plan.Holds = []model.Hold{{Gate: model.GateDeletion, Target: cacheRef(d.Cache), Class: class, Reason: reason, Message: message}}
}

// finalize plans to remove our finalizer. The garbage collector then removes the
// children.
func (d *deletion) finalize(skipped []string) {
	d.plan.Steps = append(d.plan.Steps, model.Step{
		Action: model.ActionFinalize, Target: cacheRef(d.Cache), Live: d.Cache,
		Reason: strings.Join(append([]string{"being deleted"}, skipped...), "; "),
	})
}

// suspended keeps a suspended cache.
func (d *deletion) suspended() bool {
	if !d.Cache.Spec.Suspend {
		return false
	}
	d.hold(model.Blocked, v1.ReasonSuspended,
		"the cache is being deleted and suspended, so it keeps its finalizer: set spec.suspend to false to let it go")
	return true
}

// orphaned removes our finalizer at once if the children stay without an owner
// (--cascade=orphan). The user wants them to keep running, so no hook runs.
func (d *deletion) orphaned() bool {
	if !isOrphaned(d.Input) {
		return false
	}
	skipped := []string{"its children stay, without an owner (--cascade=orphan)"}
	if len(d.hooks) > 0 {
		skipped = append(skipped, "no hook was run")
	}
	d.finalize(skipped)
	return true
}

// isOrphaned reports whether the children stay without an owner. The garbage
// collector removes its finalizer as soon as the children have lost their owner,
// long before most passes. What remains is a StatefulSet that we once made and that
// has no controller.
func isOrphaned(in model.Input) bool {
	sts := in.Live.StatefulSet
	return slices.Contains(in.Cache.Finalizers, metav1.FinalizerOrphanDependents) ||
		sts != nil && metav1.GetControllerOf(sts) == nil && fields.OurEntry(sts, "") != nil
}

// inForeground keeps a cache with hooks until a deletion in the foreground is done.
// The garbage collector deletes all children at once, Jobs too, in spite of our
// finalizer.
func (d *deletion) inForeground() bool {
	if !isInForeground(d.Cache) || d.next() == nil {
		return false
	}
	d.hold(model.Waiting, v1.ReasonForegroundDeletion, d.with(
		"the cache is being deleted in the foreground: the garbage collector first deletes its nodes and every Job; "+
			"the hooks run after that, without nodes (--cascade=background would run them with nodes)"))
	return true
}

func isInForeground(cache *v1.ClusteredCache) bool {
	return slices.Contains(cache.Finalizers, metav1.FinalizerDeleteDependents)
}

// draining deletes the client Service and gives clients time to leave. It does not
// wait for clients of nodes that are gone or that others delete.
func (d *deletion) draining() bool {
	wanted := d.drainTime()
	if wanted == 0 && d.next() == nil {
		return false
	}
	if s := d.Live.Owned(d.Cache).ClientService; s != nil && s.DeletionTimestamp == nil {
		d.plan.Steps = append(d.plan.Steps, model.Step{
			Action: model.ActionDelete, Live: s, Reason: "clients must leave: the cache is being deleted",
			Target: refOf(model.KindService, s),
		})
	}
	if wanted == 0 {
		return false
	}
	since, recorded := d.drainingSince()
	if !recorded {
		since = d.notBeforeDeletion(d.Now)
		intent := resources.Finalizer(d.Cache, since.UTC().Format(time.RFC3339Nano))
		d.plan.Steps = append(d.plan.Steps, model.Step{
			Action: model.ActionChange, Target: cacheRef(d.Cache), Intent: intent, Live: d.Cache,
			Reason: "draining begins", Changes: fields.Compare(intent, d.Cache, ""),
		})
	}
	end := since.Add(wanted)
	if !end.After(d.Now) {
		return false
	}
	then := "then its nodes go"
	if h := d.next(); h != nil {
		then = "then " + h.title + " runs"
	}
	d.hold(model.Waiting, v1.ReasonDraining, d.with(fmt.Sprintf("clients have until %s to leave (spec.deletion.drainSeconds: %d); %s",
		end.UTC().Format(time.RFC3339), d.Cache.Spec.Deletion.DrainSeconds, then)))
	d.plan.Holds[0].Until = end
	return true
}

func (d *deletion) drainTime() time.Duration {
	if d.Cache.Spec.Deletion == nil || d.Deletion.NamespaceTerminating || isInForeground(d.Cache) ||
		d.Live.Owned(d.Cache).StatefulSet == nil {
		return 0
	}
	return time.Duration(max(0, d.Cache.Spec.Deletion.DrainSeconds)) * time.Second
}

// clockSkew is how far apart the clocks of two passes may be. Each pass follows the
// clock of the API server, which sends it in whole seconds.
const clockSkew = 5 * time.Second

// drainingSince returns since when the cache is drained, by its annotation. It
// returns false for a time before the deletion: the cache was restored from a
// backup. It also returns false for a time in the future: a clock was wrong.
func (d *deletion) drainingSince() (time.Time, bool) {
	since, err := time.Parse(time.RFC3339Nano, d.Cache.Annotations[v1.DrainingSinceAnnotation])
	if err != nil || since.After(d.Now.Add(clockSkew)) || since.Before(d.Cache.DeletionTimestamp.Add(-clockSkew)) {
		return since, false
	}
	return d.notBeforeDeletion(since), true
}

func (d *deletion) notBeforeDeletion(t time.Time) time.Time {
	if t.Before(d.Cache.DeletionTimestamp.Time) {
		return d.Cache.DeletionTimestamp.Time
	}
	return t
}

// runningHooks starts the first hook that is neither done nor skipped, or waits for
// it.
func (d *deletion) runningHooks() bool {
	h := d.next()
	if h == nil {
		return false
	}
	if h.phase == hookAbsent {
		intent, err := resources.HookJob(d.Cache, h.spec, nodesOf(d.Input))
		if err != nil {
			d.hold(model.Blocked, v1.ReasonSpecInvalid, d.with(err.Error()))
			return true
		}
		d.plan.Steps = append(d.plan.Steps, model.Step{Action: model.ActionCreate, Target: h.job, Intent: intent, Reason: h.title})
	}
	class, reason := model.Waiting, v1.ReasonRunningHook
	switch h.phase {
	case hookFailed:
		class, reason = model.Blocked, v1.ReasonHookFailed
	case hookForeign:
		class, reason = model.Blocked, v1.ReasonNameConflict
	}
	d.hold(class, reason, d.with(h.message))
	return true
}

// next returns the first hook that is neither done nor skipped, or nil.
func (d *deletion) next() *hook {
	for i := range d.hooks {
		if h := &d.hooks[i]; h.phase != hookDone && h.phase != hookSkipped {
			return h
		}
	}
	return nil
}

// with adds to a sentence which hooks were skipped.
func (d *deletion) with(sentence string) string {
	return strings.Join(append([]string{sentence}, d.skippedHooks()...), "; ")
}

// skippedHooks returns a sentence on each hook that was skipped, with the reason.
func (d *deletion) skippedHooks() []string {
	var sentences, refused []string
	for _, h := range d.hooks {
		switch {
		case h.phase == hookSkipped && h.message == "":
			refused = append(refused, h.spec.Name)
		case h.phase == hookSkipped:
			sentences = append(sentences, h.message)
		}
	}
	if len(refused) > 0 {
		which := "no hook was run"
		if len(refused) < len(d.hooks) || len(d.Deletion.Jobs) > 0 {
			which = "hooks not done: " + strings.Join(refused, ", ")
		}
		sentences = append(sentences, fmt.Sprintf("%s: namespace %s is being deleted and takes no new Jobs", which, d.Cache.Namespace))
	}
	for _, name := range skipNames(d.Cache) {
		known := slices.ContainsFunc(d.hooks, func(h hook) bool { return h.spec.Name == name })
		if !known && name != v1.SkipAllHooks {
			sentences = append(sentences, fmt.Sprintf("annotation %s names %q, which is not a hook of this cache", v1.SkipHooksAnnotation, name))
		}
	}
	return sentences
}
