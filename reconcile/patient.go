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

// maxThrottled is how long a request waits for an API server that answers 429.
// Client-go alone gives up after ten tries, which often take ten seconds. One busy
// minute would then fail every cache and end the pass at the next page of a list.
const maxThrottled = 2 * time.Minute

// defaultDelay is how long to wait if the API server does not say.
const defaultDelay = 5 * time.Second

// patience is shared by the requests of a run. Each request waits as the API server
// asks, until the run ends.
//
// If every request has been answered with 429 for the longest time, the next one
// that gives up ends the run with apply.ErrThrottled. Otherwise each cache of the
// fleet would fail in its turn. That would take hours, and load the API server
// further.
type patience struct {
	longest time.Duration // the limit for one request
	ended   <-chan struct{}
	end     context.CancelFunc
	warned  sync.Once

	mu       sync.Mutex
	answered time.Time // of the last answer other than 429
}

// newPatience returns a patience that ends with ctx at the latest.
func newPatience(ctx context.Context, longest time.Duration) *patience {
	p := &patience{longest: longest, answered: time.Now()}
	p.endWith(ctx)
	return p
}

// endWith makes patience end with another context. It is called between two passes.
func (p *patience) endWith(ctx context.Context) {
	ctx, p.end = context.WithCancel(ctx)
	p.ended = ctx.Done()
}

// with calls ask until the answer is not 429.
func (p *patience) with(ctx context.Context, ask func() error) error {
	for start := time.Now(); ; {
		err := ask()
		if !apierrors.IsTooManyRequests(err) {
			p.mu.Lock()
			p.answered = time.Now()
			p.mu.Unlock()
			return err
		}
		delay := defaultDelay
		if seconds, asked := apierrors.SuggestsClientDelay(err); asked && seconds > 0 {
			delay = time.Duration(seconds) * time.Second
		}
		if time.Since(start)+delay > p.longest {
			return p.exhausted(err, delay)
		}
		p.warned.Do(func() {
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

// exhausted returns err, or an error that ends the run because every other cache
// would meet it too. A delay that we have no time left for counts as already
// waited, up to half the limit. One very long Retry-After does not prove that every
// request is throttled.
func (p *patience) exhausted(err error, delay time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.answered)+min(delay, p.longest/2) < p.longest {
		return err
	}
	p.end() // further waiting would not help the other requests
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

// Create does not wait when it writes an Event, because Events are optional.
// Admission that limits the rate of Events (EventRateLimit) answers 429 to each
// Event above the limit.
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

// patientStatus writes a status with patience.
type patientStatus struct {
	client.SubResourceWriter
	*patience
}

func (s patientStatus) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.with(ctx, func() error { return s.SubResourceWriter.Patch(ctx, o, patch, opts...) })
}
