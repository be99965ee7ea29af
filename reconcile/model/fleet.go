package model

// Fleet is what a pass did. With --wait it is what the last pass over each cache
// did.
type Fleet struct {
	// Total is the number of caches in scope.
	Total int
	// Caches has a report on each cache, sorted by namespace and name. After a pass
	// it leaves out settled caches that needed nothing. After Look it has all.
	Caches []CacheReport
	// Unlisted has the namespaces in scope that the pass has no right to list, with
	// the reason. Their caches are missing here.
	Unlisted map[string]error
	// Requests counts the requests sent, by verb and kind ("list clusteredcaches").
	Requests map[string]int
	// Waited is set for a run with --wait.
	Waited bool
	// TimedOut is set when --wait ended before everything settled.
	TimedOut bool
	// Interrupted is set when a signal ended the pass between two steps.
	Interrupted bool
	// Incomplete is why the pass could not run or ended early, in a sentence.
	Incomplete string
}
