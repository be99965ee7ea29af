// Package report turns what a pass did, a Fleet, into text for people and JSON
// for machines. It is pure: no clock, no cluster, no logger. Everything is
// sorted, so that equal passes give equal reports, and nothing that the
// cluster said can move the cursor or break out of its line.
//
// # The last line of the text
//
// It is stable. Words are in the singular for one, the parts in parentheses
// appear when they apply, the others always do:
//
//	Plan: 2 create, 1 change (3 nodes restart), 0 delete; 1 held
//	Done: 2 created, 1 changed (3 nodes restart), 0 deleted; 1 held, 0 failed; 5 caches: 3 settled, 1 progressing, 1 stalled, 0 failed
//
// ", 1 release" or ", 1 released" follows the deletions when a ClusteredCache
// that is being deleted is let go, and ", 1 failed" ends a Plan of which the
// server would refuse a step or a cache could not be looked at. Children are
// counted, and not the finalizer that every ClusteredCache gets. The first
// "failed" of Done counts steps, the second caches.
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
//	summary
//	  created, changed, deleted, released   steps on children (released: on caches)
//	  restarts      nodes that are replaced because of the changes
//	  held          holds
//	  failed        steps that failed
//	  caches        total, settled, progressing, stalled, failed
//	caches[]        every cache but those that are settled and needed nothing
//	  namespace, name
//	  state         settled, progressing, stalled, failed
//	  reason?       one word, as in the conditions of the status
//	  message?      a sentence
//	  steps[]       in the order of the writes
//	    action      create, change, delete, release
//	    kind, namespace, name
//	    result?     created, configured, unchanged, deleted, released, failed;
//	                absent: not attempted
//	    reason?     why the step is needed
//	    restarts?   nodes that are replaced because of it
//	    changes[]?
//	      path      the field, list items by their key: spec.template.spec.containers[cache].image
//	      from?, to?  its value as compact JSON text, absent: the field is; equal: only
//	                the ownership was lost
//	      by[]?     who owns the field now: name, operation, time?
//	    error?, warning?
//	  holds[]       what is wanted but withheld
//	    gate        the rule that withholds
//	    kind, namespace, name   of what is withheld
//	    class       waiting (resolves by itself) or blocked (a person must act)
//	    reason, message
//	  statusWritten true: the status of the ClusteredCache was written
//	requests        number of requests by verb and resource ("list clusteredcaches")
//
// Values that another manager set in the environment of a container, and
// kubectl's last-applied-configuration, appear in neither form: they may hold
// secrets.
package report
