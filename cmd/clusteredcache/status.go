package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/report"
)

// standingFormat is the text of status: one line per cache.
var standingFormat = format{"text", func(w io.Writer, f model.Fleet, s style) error {
	return report.Standing(w, f, report.TextOptions{Verbose: s.verbose, Color: s.color})
}}

// statusFlags are the arguments of status.
type statusFlags struct {
	passFlags
	files   []string
	wait    bool
	timeout time.Duration
}

func newStatusFlags() *statusFlags {
	o := &statusFlags{passFlags: newPassFlags("status")}
	o.formats = []format{standingFormat, jsonFormat}
	o.bindScope()
	fs := o.own
	fs.StringArrayVarP(&o.files, "filename", "f", nil, "Show the ClusteredCaches in `FILE`, whose stored spec must be that of the file: a file, a directory or - for stdin (repeatable). -n is then the namespace for manifests that name none")
	fs.BoolVar(&o.wait, "wait", false, "Repeat until every cache has settled or is stalled")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "With --wait, give up after this long (0: never)")
	o.bindRest("Show each node, what is held and the number of requests")
	return o
}

// parseStatus reads args. Its errors are usageErrors or pflag.ErrHelp.
func parseStatus(args []string) (*statusFlags, error) {
	o := newStatusFlags()
	err := o.parse(args, func() []contradiction {
		return slices.Concat(o.besideFiles(o.files), []contradiction{
			{!o.wait && o.own.Changed("timeout"), "--timeout needs --wait"},
			{o.timeout < 0, "--timeout must not be negative"},
		}, unreadable(o.files))
	})
	return o, err
}

// runStatus inspects the caches and reports how they stand.
func runStatus(ctx context.Context, args []string, p process) error {
	flags, err := parseStatus(args)
	if err != nil {
		return err
	}
	s, err := newSession(&flags.passFlags, p)
	if err != nil {
		return err
	}
	options := reconcile.Options{Scope: s.scope, Concurrency: flags.concurrency, Nodes: flags.verbose, Wait: flags.wait}
	if flags.wait {
		options.Timeout = flags.timeout
	}
	if len(flags.files) == 0 {
		s.console.say(firstLine(s.target, s.scope))
	} else {
		if options.Manifests, err = manifest.Read(flags.files, p.stdin, s.namespace); err != nil {
			return err
		}
		s.console.say(firstWords(s.target) + "the ClusteredCaches of " + sources(flags.files))
		if err := requireCaches(options.Manifests, flags.files); err != nil {
			return err
		}
	}
	fleet, err := s.run(ctx, s.inspect, s.client, options)
	return s.finish(fleet, false, exitAfter(ctx, fleet, err, failOnStalled))
}

func helpStatus(w io.Writer) {
	o := newStatusFlags()
	_, _ = fmt.Fprintf(w, `Show how ClusteredCaches stand now: the ready nodes, the running and the wanted
version, the state and its reason. Nothing is written, and no earlier pass is
needed. With -f, a cache is progressing (SpecNotApplied) until its stored spec is
that of the file.

Usage:
  clusteredcache status [NAME...] [FLAGS]
  clusteredcache status -f FILE [FLAGS]

Without NAME, -n, -l, -A and -f: in a pod all namespaces, else the namespace of
the kubeconfig's context.

Exit status:
  0         no ClusteredCache failed or is stalled (with --wait: all have settled)
  2         the command line, the configuration or a file cannot be used
  3         some ClusteredCaches are stalled or could not be observed
  4         --wait ended before everything settled
  5         the caches could not be listed
  130, 143  SIGINT, SIGTERM

Flags:
%s
Connection:
%s`, o.own.FlagUsagesWrapped(100), o.connecting.FlagUsagesWrapped(100))
}
