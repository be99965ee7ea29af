package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
)

// diffFlags are the arguments of diff.
type diffFlags struct {
	passFlags
	files []string
}

func newDiffFlags() *diffFlags {
	o := &diffFlags{passFlags: newPassFlags("diff")}
	o.bindScope()
	o.own.StringArrayVarP(&o.files, "filename", "f", nil, "Show what would change if the manifests in `FILE` were applied: a file, a directory or - for stdin (repeatable). -n is then the namespace for manifests that name none")
	o.bindRest("Show created objects in full and the number of requests")
	return o
}

// parseDiff reads args. Its errors are usageErrors or pflag.ErrHelp.
func parseDiff(args []string) (*diffFlags, error) {
	o := newDiffFlags()
	err := o.parse(args, func() []contradiction {
		return slices.Concat(o.besideFiles(o.files), unreadable(o.files))
	})
	return o, err
}

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
	if len(flags.files) == 0 {
		s.console.say(firstLine(s.target, s.scope))
	} else {
		if options.Manifests, err = manifest.Read(flags.files, p.stdin, s.namespace); err != nil {
			return err
		}
		s.console.say(firstWords(s.target) + "with the manifests of " + sources(flags.files))
		saySkipped(s.console, options.Manifests)
		if err := requireCaches(options.Manifests, flags.files); err != nil {
			return err
		}
	}
	fleet, err := s.run(ctx, s.pass, client.NewDryRunClient(s.client), options)
	return s.finish(fleet, true, exitAfterDiff(ctx, fleet, err))
}

func helpDiff(w io.Writer) {
	o := newDiffFlags()
	_, _ = fmt.Fprintf(w, `Show what reconcile would change: the same pass, with every write as a dry run
on the API server. With -f, show what reconcile would change if the manifests
were applied. Only their ClusteredCaches, ConfigMaps and Namespaces count. A
ClusteredCache in them replaces the whole stored spec, but a size that it leaves
out stays.

Usage:
  clusteredcache diff [NAME...] [FLAGS]
  clusteredcache diff -f FILE [FLAGS]

Without NAME, -n, -l, -A and -f: in a pod all namespaces, else the namespace of
the kubeconfig's context. Sometimes the API server cannot try a write: the user
may not write the object, a webhook does not support dry run, or the namespace
does not exist. The program then predicts the change itself and marks it
"estimated".

Exit status:
  0         no changes (held changes and status writes do not count)
  1         there are changes
  2         the command line, the configuration or a file cannot be used
  3         some ClusteredCaches failed; the others are shown
  5         the dry run could not run or was cut short
  130, 143  SIGINT, SIGTERM

Flags:
%s
Connection:
%s`, o.own.FlagUsagesWrapped(100), o.connecting.FlagUsagesWrapped(100))
}
