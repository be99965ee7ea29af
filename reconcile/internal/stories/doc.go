// Package stories has tests and no code. They tell what passes make of caches on
// a real API server, most of them with the real controllers.
package stories
