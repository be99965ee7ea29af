package v1

// Default fills in what the API server would, for an object that no server has
// seen. The markers in types.go repeat it; a test keeps the two together.
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
