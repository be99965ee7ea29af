package status

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// trouble is why some nodes are not ready.
type trouble struct {
	nodes []string
	cause health.Cause
}

// rollout returns the verdict on a cache that only waits for its nodes.
func rollout(in model.Input, sts *appsv1.StatefulSet, n numbers) model.Verdict {
	if n.pausedBy != "" {
		return model.Verdict{State: model.Settled, Reason: v1.ReasonRolloutPaused, Message: n.sentence()}
	}
	v := model.Verdict{State: model.Progressing, Reason: v1.ReasonProgressing, Message: n.sentence()}
	troubles := troublesOf(in, sts)
	for _, t := range troubles {
		v.Message += fmt.Sprintf("; %s: %s: %s", names(t.nodes), t.cause.Reason, t.cause.Message)
		if t.cause.Final {
			v.State = model.Stalled
		}
	}
	if len(troubles) > 0 {
		v.Reason = troubles[0].cause.Reason
	}
	if health.Overdue(in.Nodes, sts, in.Cache.Spec.ProgressDeadline(), in.Now) {
		v.State, v.Reason = model.Stalled, v1.ReasonProgressDeadlineExceeded
		v.Message = fmt.Sprintf("no progress for more than %d s (spec.rollout.progressDeadlineSeconds): %s",
			int(in.Cache.Spec.ProgressDeadline().Seconds()), v.Message)
	}
	return v
}

// troublesOf returns why nodes are not ready, first the nodes of the newest
// revision, then older ones. It lists each cause once, in the order of the first
// node that has it. A cause at an older revision is not final, because the rollout
// replaces the node.
func troublesOf(in model.Input, sts *appsv1.StatefulSet) []trouble {
	if in.Nodes == nil {
		return nil
	}
	var newest, older []trouble
	for _, pod := range in.Nodes.Pods {
		cause, ok := health.CauseOf(pod, in.Now)
		switch {
		case !ok:
		case health.IsNewest(pod, sts):
			newest = gather(newest, pod.Name, cause)
		default:
			cause.Final = false
			older = gather(older, pod.Name, cause)
		}
	}
	for _, name := range missing(in.Nodes, sts) {
		cause := health.Cause{Reason: v1.ReasonPodNotCreated, Message: health.Plain(in.Nodes.Refusals[name].Sentence)}
		// The message already names the pod.
		cause.Message = strings.ReplaceAll(cause.Message, fmt.Sprintf("pods %q ", name), "")
		newest = gather(newest, name, cause)
	}
	return append(newest, older...)
}

// missing returns the nodes whose pod was refused, by ordinal.
func missing(n *health.Nodes, sts *appsv1.StatefulSet) []string {
	var names []string
	for i := range *sts.Spec.Replicas {
		if name := resources.NodeName(sts.Name, i); n.Refusals[name].Sentence != "" {
			names = append(names, name)
		}
	}
	return names
}

// gather adds a node to the trouble with this cause, or adds the trouble.
func gather(list []trouble, node string, cause health.Cause) []trouble {
	if i := slices.IndexFunc(list, func(t trouble) bool { return t.cause == cause }); i >= 0 {
		list[i].nodes = append(list[i].nodes, node)
		return list
	}
	return append(list, trouble{nodes: []string{node}, cause: cause})
}

// names returns the first few names of a list.
func names(list []string) string {
	const most = 3
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// leaving returns how many nodes are ready and are being deleted.
func leaving(nodes *health.Nodes) int32 {
	if nodes == nil {
		return 0
	}
	count := int32(0)
	for _, pod := range nodes.Pods {
		if health.Terminating(pod) && health.Ready(pod) {
			count++
		}
	}
	return count
}

// Standing returns the state of a cache in numbers, and the state of each node if
// nodes were observed.
func Standing(in model.Input) model.Standing {
	sts := in.Live.Owned(in.Cache).StatefulSet
	n := count(in, sts)
	s := model.Standing{Ready: n.ready, Size: n.size, Runs: currentVersion(in, sts, n), Wants: in.Cache.Spec.Version}
	if in.Nodes == nil || sts == nil {
		return s
	}
	byName := map[string]*corev1.Pod{}
	for _, pod := range in.Nodes.Pods {
		byName[pod.Name] = pod
	}
	for i := range max(*sts.Spec.Replicas, n.replicas) {
		name := resources.NodeName(sts.Name, i)
		n := node(in, sts, name, byName[name])
		n.Volume = volume(in, resources.ClaimName(sts.Name, int(i)))
		s.Nodes = append(s.Nodes, n)
	}
	s.Runs = running(s.Nodes)
	return s
}

// running returns the versions of the nodes that are ready, in the order of the
// nodes.
func running(nodes []model.Node) string {
	var versions []string
	for _, n := range nodes {
		if n.State == v1.ReasonReady && !slices.Contains(versions, n.Version) {
			versions = append(versions, n.Version)
		}
	}
	return strings.Join(versions, ", ")
}

func node(in model.Input, sts *appsv1.StatefulSet, name string, pod *corev1.Pod) model.Node {
	if pod == nil {
		return model.Node{Name: name, State: "Missing", Message: health.Plain(in.Nodes.Refusals[name].Sentence)}
	}
	n := model.Node{Name: name, Version: versionOf(pod.Spec), Newest: health.IsNewest(pod, sts), State: "Starting"}
	cause, found := health.CauseOf(pod, in.Now)
	switch {
	case health.Terminating(pod):
		n.State = "Terminating"
	case health.Ready(pod):
		n.State = v1.ReasonReady
	case found:
		n.State, n.Message = cause.Reason, cause.Message
	}
	return n
}

// volume returns the size of a claim's volume, as the storage system reports it.
func volume(in model.Input, name string) string {
	if in.Volumes == nil || in.Cache.Spec.Storage == nil {
		return ""
	}
	for _, claim := range in.Volumes.Claims {
		if claim.Name != name {
			continue
		}
		has, bound := claim.Status.Capacity[corev1.ResourceStorage]
		want := in.Cache.Spec.Storage.Size
		switch {
		case !bound:
			return "not bound"
		case has.Cmp(want) > 0:
			return fmt.Sprintf("%s, more than the %s of spec.storage.size", has.String(), want.String())
		case has.Cmp(want) < 0:
			return fmt.Sprintf("%s, less than the %s of spec.storage.size", has.String(), want.String())
		}
		return has.String()
	}
	return "missing"
}
