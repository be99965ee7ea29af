package observe

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Page sizes start small, because the size of the objects is not known yet. They
// then follow the size of the objects, so that every page takes about the same
// memory.
const (
	firstPage    = 100
	smallestPage = 20
	largestPage  = 500
	// pageBytes is what a page should take on the wire. As Go values it takes
	// several times that. Each of five lists has two pages in memory: one is worked
	// on, one is on its way.
	pageBytes = 256 << 10
)

// maxRestarts bounds how often one page is requested again because its token
// expired.
const maxRestarts = 3

// entry is one listed object, with the key of the cache that it belongs to.
type entry[T any] struct {
	key    string // namespace/name of the cache
	object T
}

// page is one answer of a list.
type page[T any] struct {
	entries []entry[T]
	// next is the token of the next page. It is empty on the last page.
	next string
	// objects and bytes count what the server sent.
	objects, bytes int
}

// pager requests the page that token continues, with at most limit objects. An
// empty token requests the first page.
type pager[T any] func(ctx context.Context, token string, limit int64) (page[T], error)

// stream reads a list page by page, in key order. While one page is worked on, the
// next is on its way.
type stream[T any] struct {
	what  string // for errors
	ask   pager[T]
	items []entry[T]
	limit int64
	// coming delivers the page that is on its way. It is nil before the first
	// request, and after the last page (done).
	coming chan answer[T]
	done   bool
	last   string // the key of the last entry
	// repeats reports that the list was started again, so that its first entries
	// were already seen.
	repeats bool
}

// answer is the result of a request for a page.
type answer[T any] struct {
	page    page[T]
	repeats bool
	err     error
}

func newStream[T any](what string, ask pager[T]) *stream[T] {
	return &stream[T]{what: what, ask: ask, limit: firstPage}
}

// peek returns the next entry without taking it. It returns false at the end of the
// list.
func (s *stream[T]) peek(ctx context.Context) (entry[T], bool, error) {
	for len(s.items) == 0 {
		if s.done {
			return entry[T]{}, false, nil
		}
		if err := s.turn(ctx); err != nil {
			return entry[T]{}, false, fmt.Errorf("listing %s: %w", s.what, err)
		}
	}
	return s.items[0], true, nil
}

// take removes the next entry, and releases its memory.
func (s *stream[T]) take() {
	s.items[0] = entry[T]{}
	s.items = s.items[1:]
}

// begin requests the first page, unless that was done before.
func (s *stream[T]) begin(ctx context.Context) {
	if s.coming == nil && !s.done {
		s.send(ctx, "")
	}
}

// turn waits for the page on its way, and requests the one after it.
func (s *stream[T]) turn(ctx context.Context) error {
	s.begin(ctx)
	a := <-s.coming
	s.coming = nil
	if a.err != nil {
		return a.err
	}
	s.repeats = s.repeats || a.repeats
	var err error
	if s.items, err = s.inOrder(a.page.entries); err != nil {
		return err
	}
	s.limit = follow(s.limit, a.page.objects, a.page.bytes)
	if s.done = a.page.next == ""; !s.done {
		s.send(ctx, a.page.next)
	}
	return nil
}

// send requests a page in the background. A panic there becomes an error of this
// list. Otherwise it would end the process in the middle of its writes, with a
// status that looks like a usage error.
func (s *stream[T]) send(ctx context.Context, token string) {
	coming, limit := make(chan answer[T], 1), s.limit
	s.coming = coming
	go func() {
		var a answer[T]
		defer func() {
			if fault := recover(); fault != nil {
				a.err = fmt.Errorf("a fault in clusteredcache itself, please report it: %v\n%s", fault, debug.Stack())
			}
			coming <- a
		}()
		a.page, a.repeats, a.err = s.load(ctx, token, limit)
	}()
}

// stop waits for the page that is still on its way. Its context must have ended.
func (s *stream[T]) stop() {
	if s.coming != nil {
		<-s.coming
		s.coming = nil
	}
	s.done, s.items = true, nil
}

// load requests one page. When the token has expired, it continues with the token
// that the server offers. That token continues after the same key, over newer
// objects. If the server offers none, load starts again with the first page and
// returns repeats.
func (s *stream[T]) load(ctx context.Context, token string, limit int64) (p page[T], repeats bool, err error) {
	for try := 0; ; try++ {
		p, err = s.ask(ctx, token, limit)
		if !apierrors.IsResourceExpired(err) || try == maxRestarts {
			return p, repeats, err
		}
		token = freshToken(err)
		repeats = repeats || token == ""
	}
}

// inOrder checks the key order, on which the join depends. When a list was started
// again, it drops the entries that were already seen.
func (s *stream[T]) inOrder(entries []entry[T]) ([]entry[T], error) {
	if s.repeats {
		at := slices.IndexFunc(entries, func(e entry[T]) bool { return e.key > s.last })
		if at < 0 {
			return nil, nil
		}
		entries, s.repeats = entries[at:], false
	}
	for _, e := range entries {
		if e.key < s.last {
			return nil, fmt.Errorf("%s came after %s: the list is not in key order", e.key, s.last)
		}
		s.last = e.key
	}
	return entries, nil
}

// follow returns the size of the next page, given the objects and bytes of the last
// one.
func follow(limit int64, objects, bytes int) int64 {
	if objects == 0 || bytes == 0 {
		return limit
	}
	return min(max(pageBytes*int64(objects)/int64(bytes), smallestPage), largestPage)
}

// freshToken returns the token that the server offers instead of an expired one, or
// "".
func freshToken(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// find returns the object of the cache with this key, or the zero T if it does not
// exist. It skips the objects of caches that sort before.
func (s *stream[T]) find(ctx context.Context, key string) (T, error) {
	var none T
	for {
		e, ok, err := s.peek(ctx)
		if err != nil || !ok || e.key > key {
			return none, err
		}
		s.take()
		if e.key == key {
			return e.object, nil
		}
	}
}
