// Package fields compares an apply configuration with a live object. It says
// what an apply would change, and who owns which field. It knows no cache.
//
//	intent, live object ──► Compare ──► Changes (none: the apply would change nothing)
//	intent, answer      ──► Resisted    what the API server kept otherwise
//	stored, supposed    ──► Edit        what a manifest changes in an object
//	intent, live object ──► Strays      what the apply would leave in the way
//
// Only this package reads and writes managedFields and their paths. A stored
// field set is compared byte by byte with the one that the intent makes
// (fieldset.go), so that a converged object costs no parsing. Its tables of
// lists and unions (schema.go) are held against the schema of client-go.
package fields
