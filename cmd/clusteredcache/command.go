package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"example.com/clusteredcache/reconcile/report"
)

// command is one subcommand.
type command struct {
	name, summary string
	run           func(context.Context, []string, process) error
	// help writes the help text of the command.
	help func(io.Writer)
}

// commands returns the subcommands in the order of the help text.
func commands() []command {
	return []command{
		{"reconcile", "apply what ClusteredCaches ask for, once, and report", runReconcile, helpReconcile},
		{"diff", "show what reconcile would change, now or with other manifests", runDiff, helpDiff},
		{"status", "show how ClusteredCaches stand, and wait for them, without writing", runStatus, helpStatus},
		{"render", "print the children of ClusteredCaches in manifests, offline", runRender, helpRender},
		{"version", "print the version", runVersion, helpVersion},
	}
}

// usageError reports a command line that cannot be used. Its text ends with the
// help command to run.
type usageError struct {
	// command is the subcommand with the relevant help. Empty means the general
	// help.
	command string
	err     error
}

func (e *usageError) Error() string {
	see := "clusteredcache --help"
	if e.command != "" {
		see = "clusteredcache " + e.command + " --help"
	}
	return e.err.Error() + "; see " + see
}

func (e *usageError) Unwrap() error { return e.err }

// statusError ends a command that has already printed everything.
type statusError exitStatus

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run runs the subcommand that args name and returns the exit status. It prints
// every error except a statusError.
func run(ctx context.Context, args []string, p process) exitStatus {
	err := dispatch(ctx, args, p)
	var status statusError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return exitStatus(status)
	}
	_, _ = fmt.Fprintf(p.stderr, "clusteredcache: %s\n", report.OneLine(err.Error()))
	return exitUsage
}

// dispatch finds the subcommand that args name, or its help, and runs it.
func dispatch(ctx context.Context, args []string, p process) error {
	if len(args) == 0 {
		helpGeneral(p.stderr)
		return statusError(exitUsage)
	}
	name, rest := args[0], args[1:]
	switch name {
	case "-h", "--help":
		helpGeneral(p.stdout)
		return nil
	case "--version":
		name = "version"
	case "help":
		return runHelp(rest, p)
	}
	if strings.HasPrefix(name, "-") {
		return &usageError{err: fmt.Errorf("flag %s before the command: flags follow the command", name)}
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	err = c.run(ctx, rest, p)
	if errors.Is(err, pflag.ErrHelp) {
		c.help(p.stdout)
		return nil
	}
	return err
}

func find(name string) (command, error) {
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
	}
	return command{}, &usageError{err: fmt.Errorf("unknown command %q", name)}
}

func runHelp(args []string, p process) error {
	if len(args) == 0 {
		helpGeneral(p.stdout)
		return nil
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	c.help(p.stdout)
	return nil
}

func helpGeneral(w io.Writer) {
	var b strings.Builder
	b.WriteString("clusteredcache runs ClusteredCaches on Kubernetes. It makes one pass, reports and exits.\n\n" +
		"Usage:\n  clusteredcache COMMAND [FLAGS]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-11s %s\n", c.name, c.summary)
	}
	b.WriteString("\nRun clusteredcache COMMAND --help for the flags of a command.\n")
	_, _ = io.WriteString(w, b.String())
}

// newFlags returns an empty flag set that prints nothing itself.
func newFlags(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.SortFlags = false
	return fs
}

// parseArgs parses args with the flags of command and then runs the checks, up to
// the first that fails. Its errors are usageErrors or pflag.ErrHelp.
func parseArgs(command string, fs *pflag.FlagSet, args []string, checks ...func() error) error {
	err := fs.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	for _, check := range checks {
		if err == nil {
			err = check()
		}
	}
	if err != nil {
		return &usageError{command, err}
	}
	return nil
}
