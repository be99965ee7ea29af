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

// exitStatus is the exit status of the process. Scripts rely on the numbers.
type exitStatus int

const (
	// exitDone means that the pass is complete and nothing failed.
	exitDone exitStatus = 0
	// exitChanges means that a pass would change something. Only diff returns it.
	exitChanges exitStatus = 1
	// exitUsage means that the command line or the configuration cannot be used.
	// Nothing was done.
	exitUsage exitStatus = 2
	// exitPartial means that some caches failed or are stalled, or that some
	// namespaces may not be listed. The others are done.
	exitPartial exitStatus = 3
	// exitUnsettled means that --wait ended before everything settled.
	exitUnsettled exitStatus = 4
	// exitIncomplete means that the pass could not run or was cut short.
	exitIncomplete exitStatus = 5
)

// failOn is the least serious state of a cache that makes the process fail.
type failOn string

const (
	failOnStalled failOn = "stalled"
	failOnFailed  failOn = "failed"
)

// exitAfter returns the status after a pass. When several apply, the first of
// these wins: a signal, an incomplete pass, a wait that timed out, single caches.
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

// exitAfterDiff returns the status after a dry run. A failure wins over changes,
// because a script could mistake a partial diff for a complete one. A stalled
// cache does not make the diff fail.
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

// exitCutShort returns the status after a pass that was cut short, and exitDone
// after a complete one.
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

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string { return "received signal: " + e.signal.String() }

// signalled returns the status that shells show for a process that s ended.
func signalled(s os.Signal) exitStatus {
	if n, ok := s.(syscall.Signal); ok {
		return exitStatus(128 + int(n))
	}
	return exitIncomplete
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM, with a
// signalError as its cause. The channel yields the second signal.
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
