package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	acappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/health"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/resources"
)

// effects returns what a step means for the cache: which nodes restart and in which
// order, and what happens to the keys.
func effects(in model.Input, s model.Step) []string {
	live, isSet := s.Live.(*appsv1.StatefulSet)
	intent, isApply := s.Intent.(*acappsv1.StatefulSetApplyConfiguration)
	switch {
	case s.Action == model.ActionFinalize:
		return finalized(in)
	case s.Action == model.ActionReplace:
		return []string{"no node restarts: the nodes keep running and belong to the new StatefulSet"}
	case s.Action == model.ActionChange && isSet && isApply:
		return append(rollout(in, s, live, intent), resize(in, s, live)...)
	}
	return nil
}

func finalized(in model.Input) []string {
	if isOrphaned(in) {
		return []string{"the cache goes; its nodes and Services stay as they are, and nobody manages them any more"}
	}
	keys := "their keys are lost"
	if s := claimsOf(in); s != nil {
		keys = "their claims are kept"
		if s.Retain == v1.RetainPolicyDelete {
			keys = "their claims are deleted with them"
		}
	}
	return []string{fmt.Sprintf("the cache and its nodes go; %s", keys)}
}

// claimsOf returns the storage of the nodes. After the StatefulSet is gone it
// returns the storage in the spec.
func claimsOf(in model.Input) *v1.StorageSpec {
	if sts := in.Live.Owned(in.Cache).StatefulSet; sts != nil {
		return liveStorage(sts)
	}
	return in.Cache.Spec.Storage
}

// reused returns which claims of a former cache of this name the nodes of a new
// StatefulSet will use.
func reused(in model.Input, c child) string {
	switch n := len(in.OldClaims); {
	case n == 0 || c.ref.Kind != model.KindStatefulSet:
		return ""
	case n == 1:
		return fmt.Sprintf("an existing claim is reused, with what is on it: %s", in.OldClaims[0])
	default:
		return fmt.Sprintf("%d existing claims are reused, with what is on them: %s", n, firstFew(in.OldClaims))
	}
}

// rollout returns the effects of a changed pod template.
func rollout(in model.Input, s model.Step, live *appsv1.StatefulSet, intent *acappsv1.StatefulSetApplyConfiguration) []string {
	if !changesTemplate(s.Changes) {
		return nil
	}
	var sentences []string
	if move := moveOf(live, intent); move != "" {
		sentences = append(sentences, move)
	}
	nodes := replaced(live, *intent.Spec.Replicas)
	switch {
	case health.OnDelete(live):
		return append(sentences, "no node restarts by itself: someone set the update strategy OnDelete; the new template applies to nodes that are deleted by hand")
	case len(nodes) == 0:
		return append(sentences, "no node restarts: someone set a partition that keeps all of them on the old revision")
	case len(nodes) == 1:
		sentences = append(sentences, "1 node restarts: "+nodes[0])
	case underWay(live):
		sentences = append(sentences, fmt.Sprintf("up to %d nodes restart, %s: %s; those that already run this template do not", len(nodes), pace(live), firstFew(nodes)))
	default:
		sentences = append(sentences, fmt.Sprintf("%d nodes restart, %s, in this order: %s", len(nodes), pace(live), firstFew(nodes)))
	}
	if kept := int(*intent.Spec.Replicas) - len(nodes); kept > 0 && health.Partition(live) > 0 {
		sentences = append(sentences, fmt.Sprintf("%s kept on the old revision by a partition", nodesAre(kept)))
	}
	sentences = append(sentences, keysOfRestarted(in, live, len(nodes)))
	if down := live.Status.Replicas - live.Status.ReadyReplicas; down > 0 {
		sentences = append(sentences, fmt.Sprintf("%s already unready: the rollout continues as replaced nodes become ready", nodesAre(int(down))))
	}
	return sentences
}

func moveOf(live *appsv1.StatefulSet, intent *acappsv1.StatefulSetApplyConfiguration) string {
	return versionMove(liveImage(live), *intent.Spec.Template.Spec.Containers[0].Image)
}

// downgrade returns from which version to which a step goes back. It returns "" for
// any other step.
func downgrade(s model.Step) string {
	live, isSet := s.Live.(*appsv1.StatefulSet)
	intent, isApply := s.Intent.(*acappsv1.StatefulSetApplyConfiguration)
	if !isSet || !isApply || s.Action != model.ActionChange {
		return ""
	}
	if move := moveOf(live, intent); strings.HasPrefix(move, "downgrade") {
		return move
	}
	return ""
}

func changesTemplate(changes []fields.Change) bool {
	return slices.ContainsFunc(changes, func(c fields.Change) bool {
		return strings.HasPrefix(c.Path, "spec.template.") && c.From != c.To
	})
}

// replaced returns the nodes that the StatefulSet controller replaces for a new
// template, in its order: from the highest ordinal down to the partition.
func replaced(live *appsv1.StatefulSet, wanted int32) []string {
	if health.OnDelete(live) {
		return nil
	}
	var nodes []string
	for i := min(live.Status.Replicas, wanted) - 1; i >= health.Partition(live); i-- {
		nodes = append(nodes, resources.NodeName(live.Name, i))
	}
	return nodes
}

// underWay reports whether a rollout has not ended. The step may then return to the
// template that some nodes still run, and only the other nodes restart. The
// StatefulSet does not say which nodes these are.
func underWay(live *appsv1.StatefulSet) bool {
	return live.Status.CurrentRevision != live.Status.UpdateRevision
}

func pace(live *appsv1.StatefulSet) string {
	if r := live.Spec.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil && r.MaxUnavailable.String() != "1" {
		return r.MaxUnavailable.String() + " at a time"
	}
	return "one at a time"
}

func keysOfRestarted(in model.Input, live *appsv1.StatefulSet, restarted int) string {
	nodes := int(live.Status.Replicas)
	switch {
	case in.Cache.Spec.Storage != nil || liveStorage(live) != nil:
		return "the nodes keep the data on their volumes"
	case nodes == 1:
		return "the restart loses all keys"
	case underWay(live):
		return fmt.Sprintf("each restart loses the keys of one node, about %s of all", percent(1, nodes))
	case restarted >= nodes:
		return fmt.Sprintf("each restart loses the keys of one node, about %s of all; in the end all are lost", percent(1, nodes))
	}
	return fmt.Sprintf("each restart loses the keys of one node, in the end about %s of all", percent(restarted, nodes))
}

// resize returns the effects of a changed number of nodes.
func resize(in model.Input, s model.Step, live *appsv1.StatefulSet) []string {
	from, to := int(live.Status.Replicas), int(in.Cache.Spec.Size)
	changed := slices.ContainsFunc(s.Changes, func(c fields.Change) bool { return c.Path == "spec.replicas" && c.From != c.To })
	if !changed || from == to || from == 0 {
		return nil
	}
	if to > from {
		sentence := fmt.Sprintf("%s added", nodesAre(to-from))
		if in.Cache.Spec.Engine == v1.EngineMemcached {
			sentence += fmt.Sprintf("; clients that hash consistently miss about %s of the keys once, because these keys move to the new nodes", percent(to-from, to))
		}
		return []string{sentence}
	}
	var gone []string
	for i := from - 1; i >= to; i-- {
		gone = append(gone, resources.NodeName(live.Name, int32(i)))
	}
	if liveStorage(live) != nil {
		return []string{fmt.Sprintf("%s removed: %s; their claims are kept", nodesAre(len(gone)), firstFew(gone))}
	}
	return []string{fmt.Sprintf("%s removed: %s; about %s of the keys are lost with them", nodesAre(len(gone)), firstFew(gone), percent(from-to, from))}
}

func percent(part, all int) string {
	if all == 0 {
		return "0%"
	}
	return fmt.Sprintf("%d%%", (part*100+all/2)/all)
}

func nodesAre(n int) string {
	if n == 1 {
		return "1 node is"
	}
	return fmt.Sprintf("%d nodes are", n)
}

// firstFew returns the names, or the first few and the last of a long list.
func firstFew(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s, ... %s", strings.Join(names[:most-1], ", "), names[len(names)-1])
	}
	return strings.Join(names, ", ")
}

func liveImage(live *appsv1.StatefulSet) string {
	for _, c := range live.Spec.Template.Spec.Containers {
		if c.Name == v1.ContainerName {
			return c.Image
		}
	}
	return ""
}

// versionMove returns how the version changes. It says whether that is an upgrade
// or a downgrade if the tags can be ordered. Tags of different repositories cannot.
func versionMove(from, to string) string {
	if from != "" && resources.RepositoryOf(from) != resources.RepositoryOf(to) {
		return fmt.Sprintf("image changes from %s to %s", from, to)
	}
	was, will := resources.VersionOf(from), resources.VersionOf(to)
	if was == "" || was == will {
		return ""
	}
	a, aOK := numbersIn(was)
	b, bOK := numbersIn(will)
	if aOK && bOK {
		for i := range max(len(a), len(b)) {
			switch x, y := numberAt(a, i), numberAt(b, i); {
			case x < y:
				return fmt.Sprintf("upgrade from %s to %s", was, will)
			case x > y:
				return fmt.Sprintf("downgrade from %s to %s", was, will)
			}
		}
	}
	return fmt.Sprintf("version changes from %s to %s", was, will)
}

// numbersIn returns the dotted numbers at the start of a tag, up to a "-" or "@".
func numbersIn(version string) ([]int, bool) {
	version = strings.TrimPrefix(version, "v")
	if i := strings.IndexAny(version, "-@"); i >= 0 {
		version = version[:i]
	}
	var numbers []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

func numberAt(numbers []int, i int) int {
	if i < len(numbers) {
		return numbers[i]
	}
	return 0
}
