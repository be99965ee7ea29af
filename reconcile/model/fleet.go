package model

// Fleet is what a pass (or, with --wait, the last one over each cache) did.
type Fleet struct {
	// Total is the number of caches in scope.
	Total int
	// Caches are those of which there is something to say, sorted by
	// namespace and name: everything but the settled that needed nothing; after
	// a look, all of them.
	Caches []CacheReport
	// Unlisted are the namespaces in scope that may not be listed, with the
	// reason: their caches are missing.
	Unlisted map[string]error
	// Requests counts the requests sent, by verb and kind ("list clusteredcaches").
	Requests map[string]int
	// Waited: with --wait.
	Waited bool
	// TimedOut: --wait ended before everything settled.
	TimedOut bool
	// Interrupted: a signal ended the pass at a step boundary.
	Interrupted bool
	// Incomplete is why the pass could not run or was cut short, in a sentence.
	Incomplete string
}
