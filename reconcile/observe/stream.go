package observe

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the number of objects asked for at a time.
const pageSize = 500

// entry is one listed object with the key of the cache that it belongs to.
type entry[T any] struct {
	key    string // namespace/name of the cache
	object T
}

// stream walks a list page by page, in key order.
type stream[T any] struct {
	what string // for errors
	// page asks for the page that token continues ("": the first).
	page  func(ctx context.Context, token string) (entries []entry[T], next string, err error)
	items []entry[T]
	token string
	begun bool
	last  string
}

// peek returns the next entry without taking it; false at the end.
func (s *stream[T]) peek(ctx context.Context) (entry[T], bool, error) {
	for len(s.items) == 0 {
		if s.begun && s.token == "" {
			return entry[T]{}, false, nil
		}
		if err := s.fetch(ctx); err != nil {
			return entry[T]{}, false, err
		}
	}
	return s.items[0], true, nil
}

func (s *stream[T]) take() { s.items = s.items[1:] }

func (s *stream[T]) fetch(ctx context.Context) error {
	items, next, err := s.page(ctx, s.token)
	if token := freshToken(err); token != "" && s.begun {
		// The token expired; the server offers one that goes on from the same
		// key over newer objects.
		items, next, err = s.page(ctx, token)
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", s.what, err)
	}
	for _, e := range items {
		if e.key < s.last {
			return fmt.Errorf("listing %s: %s came after %s: the list is not in key order", s.what, e.key, s.last)
		}
		s.last = e.key
	}
	s.items, s.token, s.begun = items, next, true
	return nil
}

func freshToken(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.Status().Continue
}

// find returns the object of the cache with this key, passing over those of
// caches that sort before; the zero T when there is none.
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

// listPage asks for one page of a list.
func listPage(ctx context.Context, c client.Reader, list client.ObjectList, opts ...client.ListOption) (string, error) {
	if err := c.List(ctx, list, append(opts, client.Limit(pageSize))...); err != nil {
		return "", err
	}
	return list.GetContinue(), nil
}
