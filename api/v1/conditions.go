package v1

// Types of the conditions in the status of a ClusteredCache.
const (
	// ConditionAvailable is True when every node that the spec asks for is ready.
	// Its reason is always the most important one of the cache (the Status column).
	ConditionAvailable = "Available"
	// ConditionReconciling is True while something is under way that should end
	// by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when a person must act.
	ConditionStalled = "Stalled"
)

// make generate turns each comment below into a row of the tables in
// api/README.md: first what is so, then, after "To do:", what to do.

// Reasons of conditions and of holds. They are stable: alerts may name them.
const (
	// ReasonReady: every node is ready on the wanted version.
	// To do: nothing.
	ReasonReady = "Ready"
	// ReasonProgressing: nodes are being created, replaced or removed.
	// To do: wait.
	ReasonProgressing = "Progressing"
	// ReasonNotObserved: the StatefulSet controller has not yet seen the newest
	// StatefulSet, so its numbers are old.
	// To do: wait.
	ReasonNotObserved = "NotObserved"
	// ReasonPending: a pass decided on changes that are not applied yet.
	// To do: wait for the next pass, which continues.
	ReasonPending = "Pending"
	// ReasonRolloutPaused: every node is ready, but someone set a partition or
	// OnDelete on the StatefulSet. It keeps nodes on an older revision.
	// To do: nothing, or remove that setting. With OnDelete, delete the old pods.
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonImagePullBackOff: the image of a node cannot be pulled.
	// To do: correct `version` or `image`, or check the registry and its
	// credentials.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonCrashLoopBackOff: the container of a node ends again and again.
	// To do: read its log with `kubectl logs --previous POD`, then check `args`,
	// `config` and `version`.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonOOMKilled: the container of a node ends again and again, because it
	// needs more memory than its limit.
	// To do: raise the memory limit.
	ReasonOOMKilled = "OOMKilled"
	// ReasonCreateContainerConfigError: the container of a node cannot be created.
	// Most often a Secret or ConfigMap that podTemplate names is missing.
	// To do: create the Secret or ConfigMap that the message names.
	ReasonCreateContainerConfigError = "CreateContainerConfigError"
	// ReasonUnschedulable: the scheduler finds no machine for a node. The message
	// repeats what the scheduler says.
	// To do: add machines, lower `resources`, or relax the placement rules in
	// `podTemplate`.
	ReasonUnschedulable = "Unschedulable"
	// ReasonVolumeNotBound: the PersistentVolumeClaim of a node has no volume.
	// To do: check the StorageClass and the claim that the message names.
	ReasonVolumeNotBound = "VolumeNotBound"
	// ReasonPodNotCreated: the API server refuses the pod of a node, because of a
	// quota, Pod Security or a webhook. The message repeats what the API server
	// says.
	// To do: correct what the message names. The StatefulSet controller then tries
	// again by itself, after up to 17 minutes.
	ReasonPodNotCreated = "PodNotCreated"
	// ReasonProgressDeadlineExceeded: the nodes made no progress for longer than
	// `spec.rollout.progressDeadlineSeconds`. The message names the nodes and the
	// cause.
	// To do: do what the message says. If the nodes are only slow, wait.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonVolumeResizing: volumes are growing.
	// To do: wait. The message has what the storage system says.
	ReasonVolumeResizing = "VolumeResizing"
	// ReasonSuspended: `spec.suspend` is true, so the children stay as they are. A
	// suspended cache that is being deleted keeps its finalizer.
	// To do: set `spec.suspend` to false.
	ReasonSuspended = "Suspended"
	// ReasonConfigMapNotFound: the ConfigMap of `spec.config` does not exist. The
	// StatefulSet stays as it is.
	// To do: create the ConfigMap.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonWaitingForNodes: the cache is about to take over a Service. The Service
	// keeps its clients where they are until a node of the cache is ready.
	// To do: wait.
	ReasonWaitingForNodes = "WaitingForNodes"
	// ReasonChildTerminating: a child is still being deleted, or a child of a
	// former cache of this name is.
	// To do: wait, or let the cache take the child over with the annotation
	// `cache.example.com/adopt-by`.
	ReasonChildTerminating = "ChildTerminating"
	// ReasonNamespaceTerminating: the namespace is being deleted, and the cache
	// with it. The hooks of the cache do not run.
	// To do: wait.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonDraining: the cache is being deleted, and its clients have time to
	// leave.
	// To do: wait.
	ReasonDraining = "Draining"
	// ReasonRunningHook: the cache is being deleted, and one of its hooks runs. The
	// message names the Job.
	// To do: wait.
	ReasonRunningHook = "RunningHook"
	// ReasonHookFailed: the cache is being deleted, and one of its hooks has used
	// up its attempts or its time.
	// To do: run the hook again, or continue without it: the message has the
	// commands.
	ReasonHookFailed = "HookFailed"
	// ReasonForegroundDeletion: the cache is being deleted in the foreground. The
	// garbage collector deletes the nodes before the hooks run.
	// To do: wait.
	ReasonForegroundDeletion = "ForegroundDeletion"
	// ReasonNameConflict: an object with the name of a child or of a hook's Job
	// exists, and this cache does not control it.
	// To do: delete the object, rename the cache, or let the cache take the object
	// over with the annotation `cache.example.com/adopt-by`.
	ReasonNameConflict = "NameConflict"
	// ReasonNameInvalid: the children of the cache cannot be named after it.
	// To do: create the cache under another name, and delete this one.
	ReasonNameInvalid = "NameInvalid"
	// ReasonSpecInvalid: the stored spec breaks a rule of the API that is newer
	// than the spec.
	// To do: correct the field that the message names.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonImmutableField: the spec asks for a change that Kubernetes refuses on
	// an existing object. The other fields are applied, except when the selector
	// would change.
	// To do: undo the change, or replace the object as the message says.
	ReasonImmutableField = "ImmutableField"
	// ReasonInvalidOverlay: `spec.podTemplate` cannot be merged.
	// To do: correct the path that the message names.
	ReasonInvalidOverlay = "InvalidOverlay"
	// ReasonApplyRejected: the API server refused a write and would refuse it again
	// (quota, policy, webhook, rights).
	// To do: correct what the API server complains about: the message has its
	// answer.
	ReasonApplyRejected = "ApplyRejected"
	// ReasonApplyFailed: a write failed.
	// To do: wait for the next pass, which tries again.
	ReasonApplyFailed = "ApplyFailed"
)

// Reasons that appear only in reports: the caches have no status to write them to.
const (
	// ReasonFinalized: the cache is being deleted, and clusteredcache does not keep
	// it any longer.
	// To do: nothing.
	ReasonFinalized = "Finalized"
	// ReasonGone: the cache was deleted during the pass.
	// To do: nothing.
	ReasonGone = "Gone"
	// ReasonNotFound: no cache has the name that was asked for.
	// To do: check the name and the namespace.
	ReasonNotFound = "NotFound"
	// ReasonSpecNotApplied: with `status -f`, the stored spec differs from the
	// file, or the cache does not exist yet.
	// To do: apply the file.
	ReasonSpecNotApplied = "SpecNotApplied"
	// ReasonUndecodable: the stored cache has a form that this version of the
	// program cannot read.
	// To do: use the version that stored it.
	ReasonUndecodable = "Undecodable"
	// ReasonInterrupted: a signal or `--timeout` ended the pass before it had
	// finished this cache.
	// To do: run it again.
	ReasonInterrupted = "Interrupted"
	// ReasonPanic: a fault in this program. It does not affect other caches.
	// To do: report the fault.
	ReasonPanic = "Panic"
)
