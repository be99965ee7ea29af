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
	if c.Status.ObservedGeneration == 0 {
		c.Status.ObservedGeneration = -1
	}
}
