// Command clusteredcache brings ClusteredCaches to the state that their specs
// ask for. It makes one pass over the fleet, writes a report and exits.
//
//	args -> command table -> flags and their contradictions -> kube.Load, kube.NewClient
//	     -> reconcile.Run -> report on stdout -> exit status
//
// The command diff does the same with a dry-run client. The command status calls
// reconcile.Look instead of reconcile.Run.
//
// Results go to stdout and everything else (the first line, progress, logs,
// questions, errors) to stderr. Only main ends the process.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
)

func main() {
	started := time.Now()
	// A pass allocates much memory and keeps little of it. With Go's default of
	// 100, garbage collection takes a fifth of the CPU time. GOMEMLIMIT still
	// applies.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	// A closed output pipe must not end a pass between two writes. With a
	// handler for SIGPIPE, writing to the pipe returns an error instead. Ignoring
	// the signal is worse: credential plugins would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, again := untilSignal(context.Background())
	done := make(chan exitStatus, 1)
	go func() {
		done <- guarded(os.Stderr, func() exitStatus { return run(ctx, os.Args[1:], ourselves(started)) })
	}()
	select {
	case status := <-done:
		os.Exit(int(status))
	case caught := <-again:
		os.Exit(int(signalled(caught)))
	}
}

// guarded turns a panic into exitIncomplete. Go itself would exit with 2, which
// looks like a usage error.
func guarded(stderr io.Writer, f func() exitStatus) (status exitStatus) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(stderr, "clusteredcache: panic: %v\n%s", p, debug.Stack())
			status = exitIncomplete
		}
	}()
	return f()
}

// process holds everything that the commands use of the world outside. Tests
// replace it.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	// isTerminal reports whether one of the three streams is a terminal.
	isTerminal func(stream any) bool
	started    time.Time
	load       func(connectionFlags) (*kube.Target, error)
	connect    func(*kube.Target, *kube.Counter) (client.Client, error)
	// pass brings the caches in scope closer to their specs; inspect only reads
	// them.
	pass, inspect passFunc
	render        func(*manifest.Set) []reconcile.Rendered
}

// passFunc walks the caches that the options choose, as reconcile.Run does.
type passFunc func(context.Context, client.Client, reconcile.Options) (model.Fleet, error)

// ourselves returns the process that main runs in.
func ourselves(started time.Time) process {
	return process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv,
		isTerminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
		started: started,
		load:    connectionFlags.load,
		connect: kube.NewClient,
		pass:    reconcile.Run,
		inspect: func(ctx context.Context, c client.Client, o reconcile.Options) (model.Fleet, error) {
			return reconcile.Look(ctx, c, o)
		},
		render: reconcile.Render,
	}
}
