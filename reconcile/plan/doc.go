// Package plan is the pure centre of a pass: what was observed of one cache
// goes in, what this pass will do to it comes out.
//
//	Input (cache, live children, config, nodes and volumes of some, now)
//	   │   gates: is something withheld?          → Holds
//	   │   intent: the children as they should be (package resources)
//	   │   compare: does the live child differ?   → Changes
//	   │   grow, unstick: what single volumes and nodes need
//	   ▼
//	Plan (ordered Steps, Holds)
//
// A cache that is being deleted goes through a checklist instead (deletion.go):
// suspended, orphaned, in the foreground, draining, hooks, finalize.
//
// For takes no context, client, logger or clock, and never looks at the
// cache's own status. Values in a Plan are immutable: whoever sends an intent
// sends a copy. What the API server answered to a Step is an Outcome; For
// only says what we decide.
package plan
