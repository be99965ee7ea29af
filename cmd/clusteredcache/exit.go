package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/report"
)

// exitStatus is what the process ends with. The numbers are part of the
// command line's contract.
type exitStatus int

const (
	// exitDone: the pass is complete and nothing failed.
	exitDone exitStatus = 0
	// exitChanges: diff alone; a pass would change something.
	exitChanges exitStatus = 1
	// exitUsage: the command line or the configuration cannot be used; nothing
	// was done.
	exitUsage exitStatus = 2
	// exitPartial: some caches failed or are stalled, or some namespaces may not
	// be listed; the others are done.
	exitPartial exitStatus = 3
	// exitUnsettled: --wait ended before everything settled.
	exitUnsettled exitStatus = 4
	// exitIncomplete: the pass could not run or was cut short.
	exitIncomplete exitStatus = 5
)

// failOn says which states of caches make the process fail.
type failOn string

const (
	failOnStalled failOn = "stalled"
	failOnFailed  failOn = "failed"
)

// exitAfter is the status after a pass. When more than one would fit, the one
// that says the least was done wins: a signal, then a pass that could not run,
// then a wait that ended too early, then single caches.
func exitAfter(ctx context.Context, f model.Fleet, err error, on failOn) exitStatus {
	s := report.Summarize(f)
	caches := s.Caches
	switch status := exitCutShort(ctx, f, err); {
	case status != exitDone:
		return status
	case f.TimedOut:
		return exitUnsettled
	case s.Unlisted > 0 || caches.Failed > 0 || on == failOnStalled && caches.Stalled > 0:
		return exitPartial
	}
	return exitDone
}

// exitAfterDiff is the status after a dry run: any trouble wins over changes,
// or a script would take half a diff for a whole one. A cache that is or would
// be stalled is no trouble of the diff.
func exitAfterDiff(ctx context.Context, f model.Fleet, err error) exitStatus {
	s := report.Summarize(f)
	switch status := exitCutShort(ctx, f, err); {
	case status != exitDone:
		return status
	case s.Unlisted > 0 || s.Caches.Failed > 0 || s.Failed > 0:
		return exitPartial
	case s.Changes():
		return exitChanges
	}
	return exitDone
}

// exitCutShort is the status after a pass that did not come to its end, and
// exitDone after one that did.
func exitCutShort(ctx context.Context, f model.Fleet, err error) exitStatus {
	var s signalError
	if errors.As(context.Cause(ctx), &s) {
		return signalled(s.signal)
	}
	if err != nil || f.Interrupted {
		return exitIncomplete
	}
	return exitDone
}

// signalError is why a context ended.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string { return "received signal: " + e.signal.String() }

// signalled is the status of a process that a signal ended, as shells show it.
func signalled(s os.Signal) exitStatus {
	if n, ok := s.(syscall.Signal); ok {
		return exitStatus(128 + int(n))
	}
	return exitIncomplete
}

// untilSignal returns a context that ends, with a signalError as its cause, at
// the first SIGINT or SIGTERM, and a channel that yields the second.
func untilSignal(parent context.Context) (context.Context, <-chan os.Signal) {
	ctx, cancel := context.WithCancelCause(parent)
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	again := make(chan os.Signal, 1)
	go func() {
		cancel(signalError{<-received})
		again <- <-received
	}()
	return ctx, again
}
