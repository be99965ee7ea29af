package plan

import (
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// strays returns what an apply of the child's intent would leave in the way.
func strays(in model.Input, c child) fields.Strays {
	found := fields.StraysOf(c.intent, c.live)
	if ref := formerOwner(c.live, in.Cache); ref != nil {
		found.AddOwner("taken over from a former cache of this name", ref.UID)
	}
	found.AddRenumbered()
	found.AddExcluded()
	return found
}

// ownStrays returns the step that makes us the owner of the strays, and the object
// as it is after the step.
func ownStrays(c child, found fields.Strays) (model.Step, fields.Object) {
	after := c.live.DeepCopyObject().(fields.Object)
	after.SetManagedFields(found.Owned())
	return model.Step{Action: model.ActionOwn, Target: c.ref, Live: c.live, Managers: after.GetManagedFields(),
		Reason: found.Why() + " (only managedFields are written)"}, after
}
