package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile/apply"
)

// maxThrottled is how long a request waits for an API server that has too much
// to do (429). Client-go alone gives up after ten tries, mostly ten seconds:
// then a busy minute would fail every cache that it meets, and end the pass at
// the next page of a list.
const maxThrottled = 2 * time.Minute

// unasked is how long to wait when the API server does not say.
const unasked = 5 * time.Second

// patience is what the requests of a run share: they wait as the API server
// asks, each for itself, until the run ends. When none has got another answer
// than 429 for the longest time, the next that gives up ends the run
// (apply.ErrThrottled): a whole fleet of failures would take hours, and be of no
// help to the API server.
type patience struct {
	longest time.Duration // that a request waits
	ended   <-chan struct{}
	end     context.CancelFunc
	said    sync.Once

	mu       sync.Mutex
	answered time.Time
}

// newPatience returns patience that ends with ctx at the latest.
func newPatience(ctx context.Context, longest time.Duration) *patience {
	p := &patience{longest: longest, answered: time.Now()}
	p.endWith(ctx)
	return p
}

// endWith lets patience end with another context, between two passes.
func (p *patience) endWith(ctx context.Context) {
	ctx, p.end = context.WithCancel(ctx)
	p.ended = ctx.Done()
}

// with calls ask until its answer is another than 429.
func (p *patience) with(ctx context.Context, ask func() error) error {
	for start := time.Now(); ; {
		err := ask()
		if !apierrors.IsTooManyRequests(err) {
			p.mu.Lock()
			p.answered = time.Now()
			p.mu.Unlock()
			return err
		}
		delay := unasked
		if seconds, asked := apierrors.SuggestsClientDelay(err); asked && seconds > 0 {
			delay = time.Duration(seconds) * time.Second
		}
		if time.Since(start)+delay > p.longest {
			return p.exhausted(err, delay)
		}
		p.said.Do(func() {
			slog.Warn("the API server has too much to do and asks to wait", "longest", p.longest, "error", err)
		})
		select {
		case <-p.ended:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(delay):
		}
	}
}

// exhausted is err, or the error which says that every other cache would meet it
// as well. A delay that we have no time left for counts as already waited, up to
// half the limit: one very long Retry-After does not prove that every request is
// throttled.
func (p *patience) exhausted(err error, delay time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.answered)+min(delay, p.longest/2) < p.longest {
		return err
	}
	p.end() // those that still wait would wait in vain
	return fmt.Errorf("%w: %w", apply.ErrThrottled, err)
}

// patientReader reads with patience.
type patientReader struct {
	client.Reader
	*patience
}

func (r patientReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return r.with(ctx, func() error { return r.Reader.Get(ctx, key, o, opts...) })
}

func (r patientReader) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return r.with(ctx, func() error { return r.Reader.List(ctx, l, opts...) })
}

// patientClient makes the requests of an apply.Writer with patience.
type patientClient struct {
	client.Client
	*patience
}

func (c patientClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.with(ctx, func() error { return c.Client.Get(ctx, key, o, opts...) })
}

// Create does not wait with an Event: that is a service, and admission which
// limits the rate of Events (EventRateLimit) answers 429 for each above it.
func (c patientClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if _, event := o.(*eventsv1.Event); event {
		return c.Client.Create(ctx, o, opts...)
	}
	return c.with(ctx, func() error { return c.Client.Create(ctx, o, opts...) })
}

func (c patientClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.with(ctx, func() error { return c.Client.Update(ctx, o, opts...) })
}

func (c patientClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.with(ctx, func() error { return c.Client.Patch(ctx, o, patch, opts...) })
}

func (c patientClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.with(ctx, func() error { return c.Client.Delete(ctx, o, opts...) })
}

func (c patientClient) Status() client.SubResourceWriter {
	return patientStatus{c.Client.Status(), c.patience}
}

type patientStatus struct {
	client.SubResourceWriter
	*patience
}

func (s patientStatus) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.with(ctx, func() error { return s.SubResourceWriter.Patch(ctx, o, patch, opts...) })
}
