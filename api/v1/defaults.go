package v1

import "time"

// DefaultProgressDeadlineSeconds applies unless spec.rollout sets another value.
const DefaultProgressDeadlineSeconds = 600

// ProgressDeadline returns how long nodes may make no progress.
func (s *ClusteredCacheSpec) ProgressDeadline() time.Duration {
	seconds := int32(DefaultProgressDeadlineSeconds)
	if s.Rollout != nil && s.Rollout.ProgressDeadlineSeconds > 0 {
		seconds = s.Rollout.ProgressDeadlineSeconds
	}
	return time.Duration(seconds) * time.Second
}

// Default sets the defaults that the API server would set, for an object that no
// server has seen. The markers in types.go repeat them, and a test compares the two.
func (c *ClusteredCache) Default() {
	if c.Spec.Engine == "" {
		c.Spec.Engine = EngineMemcached
	}
	if c.Spec.Size == 0 {
		c.Spec.Size = 1
	}
	if s := c.Spec.Storage; s != nil && s.Retain == "" {
		s.Retain = RetainPolicyRetain
	}
	if d := c.Spec.Deletion; d != nil {
		d.setDefaults()
	}
	if r := c.Spec.Rollout; r != nil && r.ProgressDeadlineSeconds == 0 {
		r.ProgressDeadlineSeconds = DefaultProgressDeadlineSeconds
	}
	if c.Status.ObservedGeneration == 0 {
		c.Status.ObservedGeneration = -1
	}
}

func (d *DeletionSpec) setDefaults() {
	if d.OnFailure == "" {
		d.OnFailure = OnFailureBlock
	}
	for i := range d.Hooks {
		h := &d.Hooks[i]
		if h.Attempts == 0 {
			h.Attempts = 3
		}
		if h.TimeoutSeconds == 0 {
			h.TimeoutSeconds = 600
		}
	}
}
