package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/clusteredcache/reconcile/manifest"
)

// besideFiles lists the contradictions of -f with the other flags that choose
// caches.
func (o *passFlags) besideFiles(files []string) []contradiction {
	given := len(files) > 0
	return []contradiction{
		{given && len(o.names) > 0, "NAME and -f contradict: choose ClusteredCaches by name or by file (pass each file with its own -f)"},
		{given && o.selectorText != "", "-l and -f contradict: choose ClusteredCaches by label or by file"},
		{given && o.shard.Count > 0, "--shard and -f contradict: choose ClusteredCaches by shard or by file"},
		{given && o.allNamespaces, "-A and -f contradict: choose all ClusteredCaches or those in the files"},
		{given && len(unique(o.namespaces)) > 1, "-f with more than one -n: -n gives the one namespace for manifests that name none"},
	}
}

// unreadable lists the values of -f that name nothing to read.
func unreadable(files []string) []contradiction {
	stdin := 0
	for _, f := range files {
		if f == "-" {
			stdin++
		}
	}
	return []contradiction{
		{slices.Contains(files, ""), "-f: the name of the file is empty"},
		{stdin > 1, "-f - twice: standard input can be read only once"},
	}
}

// sources describes files, the values of -f, in words.
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
