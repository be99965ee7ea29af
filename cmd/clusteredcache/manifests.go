package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
)

// defaultNamespace is that of manifests that name none.
func (o *passFlags) defaultNamespace(target *kube.Target) string {
	if len(o.namespaces) > 0 {
		return o.namespaces[0]
	}
	return target.Namespace
}

// sources says in words where the manifests of files come from.
func sources(files []string) string {
	names := slices.Clone(files)
	for i := range names {
		if names[i] == "-" {
			names[i] = "standard input"
		}
	}
	return strings.Join(names, ", ")
}

// requireCaches refuses manifests without a ClusteredCache. They are most likely
// the wrong files, and a pipeline should not succeed with them.
func requireCaches(m *manifest.Set, files []string) error {
	if len(m.Caches) == 0 {
		return fmt.Errorf("no ClusteredCaches found in %s", sources(files))
	}
	return nil
}

// saySkipped counts the objects that are ignored because of their kind. Without
// it a reader could think that a clean diff covers everything in the files.
func saySkipped(c *console, m *manifest.Set) {
	total, parts := 0, []string{}
	for _, kind := range slices.Sorted(maps.Keys(m.Skipped)) {
		total += m.Skipped[kind]
		parts = append(parts, fmt.Sprintf("%d %s", m.Skipped[kind], kind))
	}
	switch total {
	case 0:
	case 1:
		c.say("Skipped 1 object of another kind: " + parts[0] + ".")
	default:
		c.say(fmt.Sprintf("Skipped %d objects of other kinds: %s.", total, strings.Join(parts, ", ")))
	}
}
