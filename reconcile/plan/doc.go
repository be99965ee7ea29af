// Package plan is the pure centre of a pass. Its input is what was observed of one
// cache. Its output is what this pass will do to the cache.
//
//	Input (cache, live children, config, nodes and volumes of some, now)
//	   │   gates: is something withheld?          → Holds
//	   │   intent: the children as they should be (package resources)
//	   │   compare: does the live child differ?   → Changes
//	   │   grow, unstick: what do single volumes and nodes need?
//	   ▼
//	Plan (ordered Steps, Holds)
//
// A cache that is being deleted goes through a checklist instead (deletion.go):
// suspended, orphaned, in the foreground, draining, hooks, finalize.
//
// For takes no context, client, logger or clock, and never reads the cache's own
// status. Values in a Plan are immutable, so the sender of an intent sends a copy.
// For returns only what we decide. What the API server answers to a Step is an
// Outcome.
package plan
