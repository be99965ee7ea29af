// Package fields compares an apply configuration with a live object. It says
// what an apply would change, and who owns which field. It knows nothing about
// caches.
//
//	intent, live object ──► Compare ──► Changes (empty if the apply would change nothing)
//	intent, answer      ──► Resisted    where the API server stored something else
//	stored, supposed    ──► Edit        what a manifest changes in an object
//	intent, live object ──► Strays      what the apply would leave in the way
//
// Only this package reads and writes managedFields and their paths. It compares a
// stored field set byte by byte with the field set of the intent (fieldset.go).
// So a converged object costs no parsing. A test compares the tables of lists and
// unions (schema.go) with the schema of client-go.
package fields
