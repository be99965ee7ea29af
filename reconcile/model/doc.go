// Package model has the values that the stages of a pass hand to each other. It
// decides nothing: that is the job of packages plan and status.
//
//	observe ──Input──► plan ──Plan──► apply ──Outcomes──► status ──Verdict──► CacheReport, Fleet
//
// A stage never changes a value that it received.
package model
