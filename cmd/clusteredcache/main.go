// Command clusteredcache brings ClusteredCaches to the state that they ask for:
// one pass over the fleet, a report, an exit status.
//
//	args -> command table -> flags and their contradictions -> kube.Load, kube.NewClient
//	     -> reconcile.Run -> report on stdout -> exit status
//
// diff is the same with a dry-run client, status with reconcile.Look.
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
	// A pass keeps little and drops much: with Go's own 100 a fifth of its CPU
	// is spent on finding that out. GOMEMLIMIT counts all the same.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	// A reader of our output that goes away must not end a pass between two
	// writes: with a handler, writing to it becomes an error instead. Ignoring
	// the signal would be inherited by credential plugins.
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

// guarded turns a panic, for which Go exits with 2, into a status that does
// not look like a usage error.
func guarded(stderr io.Writer, f func() exitStatus) (status exitStatus) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(stderr, "clusteredcache: panic: %v\n%s", p, debug.Stack())
			status = exitIncomplete
		}
	}()
	return f()
}

// process is what the commands see of the world outside; tests put their own
// in its place.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	// isTerminal says whether one of the three streams is a terminal.
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
