package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
)

// state is all there is in a namespace but for what differs by nature: ids,
// times, addresses. Objects are by kind and name; "nodes kept" are the pods of
// before that live on.
func state(w *world.World, before map[string]types.UID) map[string]string {
	w.Helper()
	s := map[string]string{}
	for _, list := range []client.ObjectList{&v1.ClusteredCacheList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{},
		&batchv1.JobList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.ControllerRevisionList{}} {
		w.List(list)
		if err := apimeta.EachListItem(list, func(o runtime.Object) error {
			s[fmt.Sprintf("%T %s", o, o.(client.Object).GetName())] = plainly(w, o.(client.Object))
			return nil
		}); err != nil {
			w.Fatal(err)
		}
	}
	var kept []string
	for name, uid := range w.Nodes() {
		if before[name] == uid {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	s["nodes kept"] = strings.Join(kept, " ")
	return s
}

// times are those that Kubernetes writes; addresses are of pods and Services.
var (
	ids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	addresses = regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`)
)

// plainly is an object without what differs by nature, as YAML.
func plainly(w *world.World, o client.Object) string {
	w.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		w.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		w.Fatal(err)
	}
	metadata := fields["metadata"].(map[string]any)
	for _, f := range []string{"resourceVersion", "creationTimestamp", "generateName"} {
		delete(metadata, f)
	}
	if _, isCache := o.(*v1.ClusteredCache); !isCache {
		// A child that was written twice, or anew, is as good.
		delete(metadata, "generation")
		if status, ok := fields["status"].(map[string]any); ok {
			delete(status, "observedGeneration")
			delete(status, "collisionCount")
		}
	}
	delete(fields, "revision")
	managers, _ := metadata["managedFields"].([]any)
	owned := map[string]any{}
	for _, m := range managers {
		entry := m.(map[string]any)
		owned[strings.Join([]string{text(entry["manager"]), text(entry["operation"]), text(entry["subresource"])}, "/")] = entry["fieldsV1"]
	}
	metadata["managedFields"] = owned
	out, err := yaml.Marshal(fields)
	if err != nil {
		w.Fatal(err)
	}
	s := strings.ReplaceAll(string(out), w.NS, "NS")
	return addresses.ReplaceAllString(times.ReplaceAllString(ids.ReplaceAllString(s, "ID"), "TIME"), "ADDRESS")
}

func text(v any) string { s, _ := v.(string); return s }

// differences are the objects in which two states differ.
func differences(want, got map[string]string) string {
	all := maps.Clone(want)
	maps.Copy(all, got)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch w, inWant := want[key]; {
		case !inWant:
			b.WriteString(key + ": is there and should not be\n")
		case w != got[key] && got[key] == "" && key != "nodes kept":
			b.WriteString(key + ": is missing\n")
		case w != got[key]:
			b.WriteString(key + ": " + cmp.Diff(w, got[key]) + "\n")
		}
	}
	return b.String()
}
