// Package architecture has a test and no code: which package may import what.
//
//	cmd/clusteredcache
//	   │
//	reconcile ──► observe   apply   status   report     kube
//	                 │        │        │        │         │
//	                 └────────┴─► plan ┴────────┘         │
//	                               │                      │
//	                           resources                  │
//	                               │                      │
//	                               └────► api/v1 ◄────────┘
//
// The four stages beside plan never import each other. The pure packages
// (api/v1, resources, plan, status, report) reach no client, not even through
// what they import.
package architecture
