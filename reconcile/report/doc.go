// Package report turns what a pass did, or as a dry run would do, into text for
// people, Markdown for pull requests, names for scripts and JSON for programs.
// It is pure: no clock, no cluster, no logger. Everything is sorted, so that
// equal passes give equal reports, and nothing that the cluster or a file said
// can move the cursor, break out of its line or be taken for markup.
//
//	Fleet -> outcomes -> view (lines, masked) -> Text, Markdown
//	                  -> JSON, Name
//
// # The text of a cache
//
// The marks are + for made, ~ for changed, - for deleted or let go, = for left
// as it is; below a step, - is a live value, + the wanted one, and = a value of
// which only the ownership was lost. > is what the steps mean for nodes and
// keys, ! is something withheld. A preview says "then" of the state that would
// follow, "(estimated: why)" of what the API server was not asked, and
// "(by the manifest)" of the change to the ClusteredCache itself that all the
// rest follows from.
//
// After --wait, "Not settled:" and the caches that have not follow, each with the
// reason.
//
// # The last line of the text
//
// It is stable. Words are in the singular for one, the parts in parentheses
// appear when they apply, the others always do:
//
//	Plan: 2 create, 1 change (3 nodes restart), 0 delete; 1 held
//	Done: 2 created, 1 changed (3 nodes restart), 0 deleted; 1 held, 0 failed; 5 caches: 3 settled, 1 progressing, 1 stalled, 0 failed
//
// ", 1 finalize" or ", 1 finalized" follows the deletions when a ClusteredCache
// that is being deleted is let go. What is held is followed by ", 1 edited" when
// a manifest makes or changes a ClusteredCache, by ", 1 estimated" when the
// server was not asked about some of the planned steps, and by ", 1 failed" when
// the server would refuse a step or a cache could not be looked at.
// "; 1 namespace not listed" ends either line when the identity has no right to
// list one of several namespaces. Children are counted, and the finalizer that
// every ClusteredCache gets is not. The first "failed" of Done counts steps, the
// second caches.
//
// # The JSON schema clusteredcache.report/v1
//
// One object. Fields may be added under this name; none is removed or changes
// its meaning. "?" marks those that are left out when empty.
//
//	schema          "clusteredcache.report/v1"
//	dryRun          true: nothing was written, results say what would have been
//	timedOut        true: --wait ended before everything settled
//	interrupted     true: a signal ended the pass early
//	incomplete?     why the pass could not run or was cut short
//	unlisted[]?     namespaces whose caches are missing, for want of rights
//	  namespace, message
//	summary
//	  created, changed, deleted, finalized  steps on children (finalized: on caches)
//	  restarts      nodes that are replaced because of the changes
//	  held          holds
//	  failed        steps that failed
//	  estimated     steps counted above that the API server was not asked about
//	  edited        caches that a manifest makes or changes
//	  caches        total, settled, progressing, stalled, failed
//	caches[]        every cache but those that are settled and needed nothing; of
//	                the command status, every cache
//	  namespace, name
//	  state         settled, progressing, stalled, failed
//	  reason?       one word, as in the conditions of the status
//	  message?      a sentence
//	  standing?     of the command status alone, which lists every cache
//	    ready, size nodes that are ready, that the spec asks for
//	    runs?, wants  the versions that ready nodes run ("1.6.38, 1.6.39"), that of
//	                the spec
//	    nodes[]?    (with -v, or not settled) name, state (Ready, Starting, Terminating, Missing or
//	                a reason), message?, version?, volume?, newest (of the newest revision)
//	  edit?         what a manifest changes in the cache itself
//	    new         true: the cache is not stored yet
//	    estimate?   why the API server was not asked about the manifest
//	    changes[]?  in spec, labels and annotations, as of a step
//	  steps[]       in the order of the writes
//	    action      create, change, replace, own, delete, finalize
//	    kind, namespace, name
//	    result?     created, configured, unchanged, replaced, deleted, finalized,
//	                failed, estimated; absent: not attempted
//	    reason?     why the step is needed
//	    restarts?   nodes that are replaced because of it
//	    changes[]?
//	      path      the field, list items by their key: spec.template.spec.containers[cache].image
//	      from?, to?  its value as compact JSON text, absent: the field is; equal and
//	                without "(not shown)": only the ownership was lost
//	      by[]?     who owns the field now: name, operation, time?
//	    error?, warning?
//	    estimate?   why the API server was not asked (result estimated)
//	  effects[]?    what the steps mean for nodes and keys
//	  holds[]       what is wanted but withheld
//	    gate        the rule that withholds
//	    kind, namespace, name   of what is withheld
//	    class       waiting (resolves by itself) or blocked (a person must act)
//	    reason, message
//	  statusWritten true: the status of the ClusteredCache was written
//	requests        number of requests by verb and resource ("list clusteredcaches")
//
// # Secrets
//
// Three things appear nowhere, and "(not shown)" stands for all of them alike:
// kubectl's last-applied-configuration; live values of environment variables
// unless our manager owns them and no other does, nor equal wanted values,
// which would tell them; and values of environment variables in objects that a
// preview shows in full.
package report
