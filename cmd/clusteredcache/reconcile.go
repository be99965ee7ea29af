package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/report"
)

// reconcileFlags are the arguments of reconcile.
type reconcileFlags struct {
	passFlags
	wait    bool
	timeout time.Duration
	linger  time.Duration
	failOn  string
	yes     bool
}

func newReconcileFlags() *reconcileFlags {
	o := &reconcileFlags{passFlags: newPassFlags("reconcile")}
	o.bindScope()
	fs := o.own
	fs.BoolVar(&o.wait, "wait", false, "Repeat passes until every cache has settled or is stalled")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "With --wait, give up after this long, even in the middle of a pass (0: never)")
	fs.DurationVar(&o.linger, "linger", 0, "Repeat passes until everything has settled, but for at most this long since the start. Caches that are then still progressing do not count as failed")
	fs.StringVar(&o.failOn, "fail-on", string(failOnStalled), "`STATE` that makes the exit status 3: stalled (or failed), or only failed")
	fs.BoolVarP(&o.yes, "yes", "y", false, "Do not ask before changing anything")
	o.bindRest("Report status writes and the number of requests")
	return o
}

// parseReconcile reads args. Its errors are usageErrors or pflag.ErrHelp.
func parseReconcile(args []string) (*reconcileFlags, error) {
	o := newReconcileFlags()
	err := o.parse(args, func() []contradiction {
		return []contradiction{
			{o.wait && o.own.Changed("linger"), "--wait and --linger contradict: --wait insists that everything settles, --linger does not"},
			{!o.wait && o.own.Changed("timeout"), "--timeout needs --wait: one pass has no timeout (--request-timeout is for single requests)"},
			{o.timeout < 0, "--timeout must not be negative"},
			{o.linger < 0, "--linger must not be negative"},
			{!slices.Contains([]failOn{failOnStalled, failOnFailed}, failOn(o.failOn)), "--fail-on must be stalled or failed"},
		}
	})
	return o, err
}

// reconciling is one run of the reconcile command.
type reconciling struct {
	*session
	flags *reconcileFlags
}

// runReconcile connects to the cluster, asks the person at the terminal, makes
// the pass and reports.
func runReconcile(ctx context.Context, args []string, p process) error {
	flags, err := parseReconcile(args)
	if err != nil {
		return err
	}
	s, err := newSession(&flags.passFlags, p)
	if err != nil {
		return err
	}
	r := &reconciling{session: s, flags: flags}
	r.console.say(firstLine(r.target, r.scope))
	if r.mayAsk() {
		if err := r.confirm(ctx); err != nil {
			return err
		}
	}
	return r.apply(ctx)
}

// apply makes the pass and reports on stdout.
func (r *reconciling) apply(ctx context.Context) error {
	options := reconcile.Options{Scope: r.scope, Concurrency: r.flags.concurrency, Wait: r.flags.wait, Events: true}
	if r.flags.wait {
		options.Timeout = r.flags.timeout
	}
	if r.flags.linger > 0 {
		options.LingerUntil = r.started.Add(r.flags.linger)
	}
	fleet, err := r.run(ctx, r.pass, r.client, options)
	return r.finish(fleet, false, exitAfter(ctx, fleet, err, failOn(r.flags.failOn)))
}

// mayAsk reports whether a person is there to answer a question.
func (r *reconciling) mayAsk() bool {
	return !r.flags.yes && r.isTerminal(r.stdin) && r.isTerminal(r.stderr)
}

// confirm shows what a dry run would change, and asks whether to apply it. It
// does not ask when there is nothing to do. Its error ends the process: the dry
// run was cut short, or the answer is no.
func (r *reconciling) confirm(ctx context.Context) error {
	fleet, err := r.run(ctx, r.pass, client.NewDryRunClient(r.client),
		reconcile.Options{Scope: r.scope, Concurrency: r.flags.concurrency})
	if status := exitCutShort(ctx, fleet, err); status != exitDone {
		return statusError(status)
	}
	if report.Summarize(fleet).Writes == 0 {
		return nil
	}
	_ = report.Text(r.console, fleet, report.TextOptions{Preview: true, Color: r.colorful(r.stderr)})
	if r.ask(ctx, "Apply? [y/N] ") {
		return nil
	}
	r.console.say("Nothing was changed.")
	// No is a failure, so that a command after && does not run.
	return statusError(max(exitIncomplete, exitCutShort(ctx, fleet, nil)))
}

// ask asks question on stderr. Only y and yes mean yes. The end of the input and
// the end of ctx mean no.
func (r *reconciling) ask(ctx context.Context, question string) bool {
	_, _ = io.WriteString(r.console, question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r.stdin).ReadString('\n')
		if !strings.HasSuffix(line, "\n") {
			// The terminal echoed no line feed that ends our line.
			_, _ = io.WriteString(r.console, "\n")
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		return a == "y" || a == "yes"
	case <-ctx.Done():
		_, _ = io.WriteString(r.console, "\n")
		return false
	}
}

func helpReconcile(w io.Writer) {
	o := newReconcileFlags()
	_, _ = fmt.Fprintf(w, `Apply what ClusteredCaches ask for, once: finalizer, children and status.
The report goes to stdout. On a terminal the program first shows the plan and
asks.

Usage:
  clusteredcache reconcile [NAME...] [FLAGS]

Without NAME, -n, -l and -A: in a pod all namespaces, else the namespace of the
kubeconfig's context.

Exit status:
  0         the pass is complete, nothing failed
  2         the command line or the configuration cannot be used
  3         some ClusteredCaches failed or are stalled; the others are done
  4         --wait ended before everything settled
  5         the pass could not run or was cut short, or you answered no
  130, 143  SIGINT, SIGTERM: stopped at a step boundary

Flags:
%s
Connection:
%s`, o.own.FlagUsagesWrapped(100), o.connecting.FlagUsagesWrapped(100))
}
