package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"slices"
	"strings"
	"testing"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// A manifest is the whole spec: what it leaves out of it shows as a removal. New
// caches, new namespaces and ConfigMaps of the stream are taken as applied.
func TestDiffOfManifests(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Named("old").Cache(`spec: {args: ["-v"]}`)
	w.Settle()
	before := w.Versions()
	f := w.DiffOf(`
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: old}
spec: {version: 1.6.39} # no size: whoever scales the cache keeps it
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: new}
spec: {version: 1.6.39, config: {name: cfg}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg}
data: {a: b}
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: far, namespace: not-there-yet}
spec: {version: 1.6.39, size: 2}
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: wrong}
spec: {version: 1.6.39+5}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
`)
	byName := map[string]model.CacheReport{}
	for _, c := range f.Caches {
		byName[c.Name] = c
	}
	old := byName["old"]
	if d := cmp.Diff([]fields.Change{
		{Path: "spec.args", From: `["-v"]`}, {Path: "spec.version", From: `"1.6.38"`, To: `"1.6.39"`},
	}, withoutOwners(old.Edit.Changes)); d != "" {
		t.Errorf("old: %s", d)
	}
	if len(old.Outcomes) != 1 || old.Outcomes[0].Result != model.Configured || old.Outcomes[0].Step.Restarts != 3 {
		t.Errorf("old: %+v", old.Outcomes)
	}
	if e := strings.Join(old.Plan.Steps[0].Effects, "; "); !strings.Contains(e, "upgrade from 1.6.38 to 1.6.39") || !strings.Contains(e, "old-2, old-1, old-0") || !strings.Contains(e, "33%") {
		t.Errorf("effects: %s", e)
	}
	fresh := byName["new"]
	if !fresh.Edit.New || len(fresh.Plan.Holds) != 0 || len(fresh.Outcomes) != 4 || fresh.Outcomes[0].Result != model.Estimated || fresh.Outcomes[1].Result != model.Created {
		t.Errorf("new: %+v", fresh)
	}
	for _, o := range byName["far"].Outcomes {
		if o.Result != model.Estimated || o.Estimate != "when namespace not-there-yet is created" {
			t.Errorf("far: %+v", o)
		}
	}
	if v := byName["wrong"].Verdict; v.State != model.NotDone || !strings.Contains(v.Message, v1.MessageVersion) {
		t.Errorf("wrong: %+v", v)
	}
	if d := cmp.Diff(before, w.Versions()); d != "" {
		t.Error(d)
	}
}

// Who applied a size with kubectl, and then leaves it out, takes it away: the
// default comes in, and nodes go.
func TestDiffOfAManifestThatNoLongerHasASize(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"size":3,"version":"1.6.38"}}'}}`)
	w.Settle()
	f := w.DiffOf(`
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: cache}
spec: {version: 1.6.38}
`)
	edit := f.Caches[0].Edit.Changes
	if !slices.ContainsFunc(edit, func(c fields.Change) bool { return c.Path == "spec.size" && c.From == "3" && c.To == "1" }) {
		t.Errorf("changes: %+v", edit)
	}
}

// Labels and annotations that a manifest leaves out go if kubectl's last apply
// set them, client-side or server-side; those of others stay.
func TestDiffOfAManifestWithoutOthersLabels(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Named("client-side").Cache(`
metadata:
  labels: {kustomize.toolkit.fluxcd.io/name: shop, gone: "1", kept: "1"}
  annotations:
    argocd.argoproj.io/tracking-id: shop
    gone: "1"
    kubectl.kubernetes.io/last-applied-configuration: >-
      {"metadata":{"labels":{"gone":"1","kept":"1"},"annotations":{"gone":"1"}},"spec":{"size":3,"version":"1.6.38"}}
`)
	c := w.Named("server-side").Cache(`metadata: {labels: {labelled: "1"}}`)
	for manager, labels := range map[string]string{"kubectl": "{gone: '1', kept: '1', shared: '1'}", "kustomize-controller": "{shared: '1'}"} {
		apply := `{apiVersion: cache.example.com/v1, kind: ClusteredCache, metadata: {name: server-side, labels: ` + labels + `}}`
		w.Apply(c, apply, manager)
	}
	w.Settle()
	f := w.DiffOf(`
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: client-side, labels: {kept: "2", new: "1"}}
spec: {version: 1.6.38, size: 3}
---
apiVersion: cache.example.com/v1
kind: ClusteredCache
metadata: {name: server-side, labels: {kept: "1"}}
spec: {version: 1.6.38, size: 3}
`)
	edits := map[string][]fields.Change{}
	for _, c := range f.Caches {
		edits[c.Name] = withoutOwners(c.Edit.Changes)
	}
	if d := cmp.Diff(map[string][]fields.Change{
		"client-side": {
			{Path: "metadata.annotations.gone", From: `"1"`},
			{Path: "metadata.labels.gone", From: `"1"`},
			{Path: "metadata.labels.kept", From: `"1"`, To: `"2"`},
			{Path: "metadata.labels.new", To: `"1"`},
		},
		"server-side": {{Path: "metadata.labels.gone", From: `"1"`}},
	}, edits); d != "" {
		t.Error(d)
	}
}

func withoutOwners(changes []fields.Change) []fields.Change {
	var list []fields.Change
	for _, c := range changes {
		c.By = nil
		list = append(list, c)
	}
	return list
}
