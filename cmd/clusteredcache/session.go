package main

import (
	"context"
	"errors"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// session is one run of a command that makes a pass.
type session struct {
	process
	reportFlags
	target *kube.Target
	scope  observe.Scope
	// namespace is the one for manifests that name none.
	namespace string
	client    client.Client
	counter   *kube.Counter
	console   *console
}

// newSession finds the cluster that the flags choose. It sends no request.
func newSession(flags *passFlags, p process) (*session, error) {
	s := &session{process: p, reportFlags: flags.reportFlags, counter: &kube.Counter{}}
	s.console = &console{w: p.stderr, terminal: p.isTerminal(p.stderr) && p.getenv("TERM") != "dumb"}
	logTo(s.console)
	var err error
	if s.target, err = p.load(flags.connection); err != nil {
		return nil, err
	}
	if s.client, err = p.connect(s.target, s.counter); err != nil {
		return nil, err
	}
	s.scope, s.namespace = flags.scope(s.target), flags.defaultNamespace(s.target)
	return s, nil
}

// run calls pass with c, shows its progress, and says why it was cut short.
func (s *session) run(ctx context.Context, pass passFunc, c client.Client, o reconcile.Options) (model.Fleet, error) {
	h := startHeartbeat(s.console)
	defer h.stop()
	o.Progress, o.Now = h.update, s.target.Clock.Now
	announced := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.console.say("Stopping at the next step boundary; a second signal stops at once.")
		close(announced)
	})
	defer func() {
		if !stop() {
			<-announced
		}
	}()
	fleet, err := pass(ctx, c, o)
	fleet.Requests = s.counter.Counts()
	for ns, refusal := range fleet.Unlisted {
		fleet.Unlisted[ns] = errors.New(kube.Explain(refusal, s.target))
	}
	if err != nil {
		fleet.Incomplete = kube.Explain(err, s.target)
		s.console.say("clusteredcache: " + fleet.Incomplete)
	}
	return fleet, err
}

// finish writes the reports and returns how the process ends: with status,
// unless a report could not be written.
func (s *session) finish(f model.Fleet, preview bool, status exitStatus) error {
	if f.Total == 0 && f.Incomplete == "" && !f.Interrupted {
		s.console.say("No ClusteredCaches found in " + where(s.scope) + ".")
	}
	appearance := style{preview: preview, verbose: s.verbose, color: s.colorful(s.stdout)}
	for _, o := range s.outputs {
		if err := o.write(s.stdout, f, appearance); err != nil {
			// The pass is done, but its report is lost.
			s.console.say("clusteredcache: " + err.Error())
			status = max(status, exitIncomplete)
		}
	}
	if status == exitDone {
		return nil
	}
	return statusError(status)
}

// colorful reports whether stream gets colours.
func (s *session) colorful(stream io.Writer) bool {
	switch s.color {
	case "always":
		return true
	case "never":
		return false
	}
	return s.isTerminal(stream) && s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb"
}
