// Package model has the values that travel from stage to stage of a pass. It has
// no rule: packages plan and status decide.
//
//	observe ──Input──► plan ──Plan──► apply ──Outcomes──► status ──Verdict──► CacheReport, Fleet
//
// No stage changes a value that it got.
package model
