package v1

// Types of the conditions in a ClusteredCache's status.
const (
	// ConditionAvailable is True when every node the spec asks for is ready.
	// Its reason is always the cache's most important one (the Status column).
	ConditionAvailable = "Available"
	// ConditionReconciling is True while something is under way that is
	// expected to end by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will move before a person acts.
	ConditionStalled = "Stalled"
)

// Reasons of conditions and of holds. They are stable: alerts may name them.
const (
	// ReasonReady: every node is ready on the wanted version.
	ReasonReady = "Ready"
	// ReasonProgressing: nodes are being created, replaced or removed.
	ReasonProgressing = "Progressing"
	// ReasonRolloutPaused: every node is ready, and someone keeps some of them on
	// an older revision with a partition or the update strategy OnDelete.
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonProgressDeadlineExceeded: nodes have made no progress for longer
	// than spec.rollout.progressDeadlineSeconds.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonImagePullBackOff: a node's image cannot be pulled.
	ReasonImagePullBackOff = "ImagePullBackOff"
	// ReasonCrashLoopBackOff: a node's container ends again and again.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonOOMKilled: a node's container ends again and again for want of memory.
	ReasonOOMKilled = "OOMKilled"
	// ReasonCreateContainerConfigError: a node's container cannot be created,
	// most often because a Secret or ConfigMap that podTemplate names is missing.
	ReasonCreateContainerConfigError = "CreateContainerConfigError"
	// ReasonUnschedulable: the scheduler finds no machine for a node.
	ReasonUnschedulable = "Unschedulable"
	// ReasonVolumeNotBound: a node's claim has no volume.
	ReasonVolumeNotBound = "VolumeNotBound"
	// ReasonPodNotCreated: the API server refuses a node's pod.
	ReasonPodNotCreated = "PodNotCreated"
	// ReasonVolumeResizing: volumes are growing.
	ReasonVolumeResizing = "VolumeResizing"
	// ReasonNotObserved: the StatefulSet controller has not yet seen the
	// newest StatefulSet, so its numbers are old.
	ReasonNotObserved = "NotObserved"
	// ReasonPending: changes that a pass decided on are not applied yet.
	ReasonPending = "Pending"
	// ReasonSuspended: spec.suspend is set; children are left as they are.
	ReasonSuspended = "Suspended"
	// ReasonConfigMapNotFound: the ConfigMap of spec.config does not exist.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonChildTerminating: a child of a former cache of this name is still
	// being deleted.
	ReasonChildTerminating = "ChildTerminating"
	// ReasonWaitingForNodes: a Service is taken over when a node is ready.
	ReasonWaitingForNodes = "WaitingForNodes"
	// ReasonNamespaceTerminating: the namespace is being deleted, and the cache
	// with it.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonDraining: the cache is being deleted and clients are given time to
	// leave.
	ReasonDraining = "Draining"
	// ReasonRunningHook: the cache is being deleted and a hook of it runs.
	ReasonRunningHook = "RunningHook"
	// ReasonHookFailed: the cache is being deleted and a hook of it failed.
	ReasonHookFailed = "HookFailed"
	// ReasonForegroundDeletion: the garbage collector deletes the children of
	// the cache before hooks can run.
	ReasonForegroundDeletion = "ForegroundDeletion"
	// ReasonNameConflict: an object of a child's name belongs to someone else.
	ReasonNameConflict = "NameConflict"
	// ReasonNameInvalid: the cache's name cannot name its children.
	ReasonNameInvalid = "NameInvalid"
	// ReasonSpecInvalid: the stored spec breaks a rule of the API, because it
	// was stored before the rule.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonImmutableField: the spec asks for a change that the API server
	// refuses on an existing object.
	ReasonImmutableField = "ImmutableField"
	// ReasonInvalidOverlay: spec.podTemplate cannot be merged.
	ReasonInvalidOverlay = "InvalidOverlay"
	// ReasonApplyRejected: the API server refused a write, and would again.
	ReasonApplyRejected = "ApplyRejected"
	// ReasonApplyFailed: a write failed; the next pass tries again.
	ReasonApplyFailed = "ApplyFailed"
)

// Reasons that only reports give: there is no status to write them to.
const (
	// ReasonFinalized: the cache is being deleted and nothing of ours keeps it.
	ReasonFinalized = "Finalized"
	// ReasonSpecNotApplied: the live spec is not that of the manifest that is
	// waited for (status -f).
	ReasonSpecNotApplied = "SpecNotApplied"
	// ReasonGone: the cache was deleted during the pass.
	ReasonGone = "Gone"
	// ReasonNotFound: there is no cache of the name that was asked for.
	ReasonNotFound = "NotFound"
	// ReasonUndecodable: the stored cache is not of a form that this version knows.
	ReasonUndecodable = "Undecodable"
	// ReasonInterrupted: a signal or --timeout ended the pass before the cache was done.
	ReasonInterrupted = "Interrupted"
	// ReasonPanic: a fault in this program; other caches are not affected.
	ReasonPanic = "Panic"
)
