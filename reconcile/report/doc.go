// Package report describes what a pass did, or in a dry run would do. It writes text
// for people, Markdown for pull requests, names for scripts and JSON for programs.
//
// The package is pure: it has no clock, cluster or logger. Everything is sorted, so
// that equal passes give equal reports. Text from the cluster or a file cannot move
// the cursor, end its line or act as markup.
//
//	Fleet -> outcomes -> view (lines, masked) -> Text, Markdown
//	                  -> JSON, Name
//
// # The text of a cache
//
// Each line begins with a mark:
//
//	"+"  created
//	"~"  changed
//	"-"  deleted, or our finalizer removed
//	"="  left as it is
//	">"  an effect of the steps on nodes and keys
//	"!"  something withheld
//
// Below a step, "-" marks the live value and "+" the wanted one. "=" marks a value
// whose ownership alone was lost.
//
// A preview writes "then" before the state that would follow. It writes "(estimated:
// why)" after a step that the API server was not asked about. It writes "(by the
// manifest)" after the change to the ClusteredCache itself, which causes all the
// other steps.
//
// After --wait, the line "Not settled:" and the caches that did not settle follow,
// each with its reason.
//
// # The last line of the text
//
// It is stable. Its words are in the singular for one. The parts in parentheses
// appear only when they apply, and the others always appear:
//
//	Plan: 2 create, 1 change (3 nodes restart), 0 delete; 1 held
//	Done: 2 created, 1 changed (3 nodes restart), 0 deleted; 1 held, 0 failed; 5 caches: 3 settled, 1 progressing, 1 stalled, 0 failed
//
// More parts appear when they apply:
//
//   - ", 1 finalize" or ", 1 finalized" follows the deletions when our finalizer is
//     removed from a ClusteredCache that is being deleted.
//   - ", 1 edited" follows the holds when a manifest creates or changes a
//     ClusteredCache.
//   - ", 1 estimated" comes next when the server was not asked about some of the
//     planned steps.
//   - ", 1 failed" comes next when the server would refuse a step or a cache could
//     not be read.
//   - "; 1 namespace not listed" ends either line when the identity may not list one
//     of several namespaces.
//
// Steps on children are counted. Adding our finalizer to a ClusteredCache is not
// counted. The first "failed" of Done counts steps, the second counts caches.
//
// # The JSON schema clusteredcache.report/v1
//
// The report is one JSON object. Fields may be added under this name. No field is
// removed or changes its meaning. "?" marks a field that is omitted when empty.
//
//	schema          "clusteredcache.report/v1"
//	dryRun          true if nothing was written; results show what would have been
//	timedOut        true if --wait ended before everything settled
//	interrupted     true if a signal ended the pass early
//	incomplete?     why the pass could not run or was cut short
//	unlisted[]?     namespaces that the identity may not list; their caches are missing
//	  namespace, message
//	summary
//	  created, changed, deleted, finalized  steps on children (finalized: on caches)
//	  restarts      nodes that restart because of the changes
//	  held          holds
//	  failed        steps that failed
//	  estimated     steps counted above that the API server was not asked about
//	  edited        caches that a manifest creates or changes
//	  caches        total, settled, progressing, stalled, failed
//	caches[]        every cache, except the settled ones that needed nothing; the
//	                command status lists those too
//	  namespace, name
//	  state         settled, progressing, stalled, failed
//	  reason?       one word, as in the conditions of the status
//	  message?      a sentence
//	  standing?     only from the command status
//	    ready, size  number of ready nodes, and of nodes in the spec
//	    runs?, wants  versions that ready nodes run ("1.6.38, 1.6.39"), and version
//	                in the spec
//	    nodes[]?    with -v, or if the cache is not settled
//	      name, state  Ready, Starting, Terminating, Missing or a reason
//	      message?, version?, volume?
//	      newest    true if the node is of the newest revision
//	  edit?         what a manifest changes in the cache itself
//	    new         true if the cache is not stored yet
//	    estimate?   why the API server was not asked about the manifest
//	    changes[]?  in spec, labels and annotations; the form is that of a step
//	  steps[]       in the order of the writes
//	    action      create, change, replace, own, delete, finalize
//	    kind, namespace, name
//	    result?     created, configured, unchanged, replaced, deleted, finalized,
//	                failed, estimated; absent if the step was not attempted
//	    reason?     why the step is needed
//	    restarts?   nodes that restart because of the step
//	    changes[]?
//	      path      the field, with list items by key: spec.template.spec.containers[cache].image
//	      from?, to?  the live and the wanted value as compact JSON text; absent if
//	                the field is absent; if both are equal and not "(not shown)",
//	                only the ownership was lost
//	      by[]?     who owns the field now: name, operation, time?
//	    error?, warning?
//	    estimate?   why the API server was not asked (result estimated)
//	  effects[]?    effects of the steps on nodes and keys
//	  holds[]       wanted changes that are withheld
//	    gate        the rule that withholds
//	    kind, namespace, name   the object that is withheld
//	    class       waiting (resolves by itself) or blocked (a person must act)
//	    reason, message
//	  statusWritten  true if the status of the ClusteredCache was written
//	requests        number of requests by verb and resource ("list clusteredcaches")
//
// # Secrets
//
// A report never shows these values. It replaces each of them with "(not shown)":
//
//   - kubectl's last-applied-configuration
//   - live values of environment variables, unless our manager alone owns them
//   - wanted values that are equal to such a hidden value, and would reveal it
//   - values of environment variables in objects that a preview shows in full
package report
