package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
)

// runDiff makes the pass that reconcile would make, as a dry run.
func runDiff(ctx context.Context, args []string, p process) error {
	flags, err := parseDiff(args)
	if err != nil {
		return err
	}
	s, err := newSession(&flags.passFlags, p)
	if err != nil {
		return err
	}
	options := reconcile.Options{Scope: s.scope, Concurrency: flags.concurrency, Estimate: kube.CouldNotTry}
	about, none := firstLine(s.target, s.scope), where(s.scope)
	if len(flags.files) > 0 {
		if options.Manifests, err = manifest.Read(flags.files, p.stdin, flags.defaultNamespace(s.target)); err != nil {
			return err
		}
		none = sources(flags.files)
		about = firstWords(s.target) + "with the manifests of " + none
	}
	s.console.say(about)
	if options.Manifests != nil {
		sayManifests(s.console, options.Manifests)
	}
	fleet, err := s.run(ctx, client.NewDryRunClient(s.client), options)
	if err == nil && fleet.Total == 0 && len(fleet.Caches) == 0 && !fleet.Interrupted {
		if options.Manifests != nil {
			return errNoCaches(none)
		}
		s.console.say("No ClusteredCaches found in " + none + ".")
	}
	return s.write(fleet, true, exitAfterDiff(ctx, fleet, err))
}

// defaultNamespace is that of manifests that name none.
func (o *passFlags) defaultNamespace(target *kube.Target) string {
	if len(o.namespaces) > 0 {
		return o.namespaces[0]
	}
	return target.Namespace
}

// sources says in words where manifests come from.
func sources(files []string) string {
	names := slices.Clone(files)
	for i := range names {
		if names[i] == "-" {
			names[i] = "standard input"
		}
	}
	return strings.Join(names, ", ")
}

// errNoCaches: files without a ClusteredCache are most likely the wrong files,
// and a pipeline should not pass because of that.
func errNoCaches(sources string) error {
	return fmt.Errorf("no ClusteredCaches found in %s", sources)
}

// sayManifests says what of the manifests is not looked at: nobody should take
// a clean diff for one of everything in the files.
func sayManifests(c *console, m *manifest.Set) {
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

func helpDiff(w io.Writer) {
	o := newDiffFlags()
	_, _ = fmt.Fprintf(w, `Show what reconcile would change: the same pass, every write of it as a dry run
on the API server. With -f: what it would change if the manifests were applied;
ClusteredCaches, ConfigMaps and Namespaces of them count, a ClusteredCache as a
whole.

Usage:
  clusteredcache diff [NAME...] [FLAGS]
  clusteredcache diff -f FILE [FLAGS]

Without NAME, -n, -l, -A and -f: in a pod all namespaces, else the namespace of
the kubeconfig's context. An object that the API server cannot be asked about
(the user may not write it, a webhook does not support dry run, its namespace
does not exist) is shown as this program alone sees it, marked "estimated".

Exit status:
  0         no changes; what is held and the status that follows are no changes
  1         there are changes
  2         the command line, the configuration or a file cannot be used
  3         some ClusteredCaches failed, the others are shown
  5         the dry run could not run or was cut short
  130, 143  SIGINT, SIGTERM

Flags:
%s
Connection:
%s`, o.own.FlagUsagesWrapped(100), o.connecting.FlagUsagesWrapped(100))
}
