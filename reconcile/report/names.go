package report

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strings"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/model"
)

// NameOptions are the options of Name.
type NameOptions struct {
	// Preview means that the fleet comes from a dry run.
	Preview bool
}

// resources maps kinds to the names that kubectl uses. A kind that is missing here
// belongs to the core group.
var resources = map[model.Kind]string{
	model.KindCache:            "clusteredcache." + v1.GroupVersion.Group,
	model.KindStatefulSet:      "statefulset.apps",
	model.KindDisruptionBudget: "poddisruptionbudget.policy",
	model.KindJob:              "job.batch",
}

// Name writes one line for each object that was changed, or in a preview would be.
// The form is NAMESPACE/RESOURCE.GROUP/NAME, such as shop/statefulset.apps/cache,
// without a group for the core group. The lines are sorted and unique. Name returns
// an error of w.
func Name(w io.Writer, f model.Fleet, o NameOptions) error {
	var names []string
	for _, r := range f.Caches {
		if r.Edited() {
			names = append(names, objectName(cacheOf(r)))
		}
		for _, outcome := range outcomes(r) {
			if writes(outcome) && (o.Preview || outcome.Result != notAttempted) {
				names = append(names, objectName(outcome.Step.Target))
			}
		}
	}
	slices.Sort(names)
	b := bufio.NewWriter(w)
	for _, name := range slices.Compact(names) {
		_, _ = b.WriteString(name + "\n")
	}
	return b.Flush()
}

// objectName returns the line for one object.
func objectName(r model.Ref) string {
	resource := cmp.Or(resources[r.Kind], strings.ToLower(string(r.Kind)))
	return OneLine(r.Namespace + "/" + resource + "/" + r.Name)
}
