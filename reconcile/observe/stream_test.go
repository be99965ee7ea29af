package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// pages serves lists of keys, a page for each token "", "1", "2", ...
func pages(lists ...[]string) *stream[string] {
	return &stream[string]{what: "tests", page: func(_ context.Context, token string) ([]entry[string], string, error) {
		var entries []entry[string]
		at := len(token) // "", "x", "xx": as many pages are behind us
		for _, key := range lists[at] {
			entries = append(entries, entry[string]{key: key, object: key})
		}
		next := ""
		if at+1 < len(lists) {
			next = token + "x"
		}
		return entries, next, nil
	}}
}

func all(t *testing.T, s *stream[string]) ([]string, error) {
	t.Helper()
	var keys []string
	for {
		e, ok, err := s.peek(t.Context())
		if err != nil || !ok {
			return keys, err
		}
		keys = append(keys, e.key)
		s.take()
	}
}

func TestStreamReadsEveryPage(t *testing.T) {
	keys, err := all(t, pages([]string{"a/1", "a/2"}, nil, []string{"b/1"}))
	if err != nil || !slices.Equal(keys, []string{"a/1", "a/2", "b/1"}) {
		t.Errorf("%v, %v", keys, err)
	}
}

func TestStreamFindsAcrossPages(t *testing.T) {
	for key, want := range map[string]string{"x/b": "", "x/c": "x/c", "xa/a": "xa/a", "xb/a": ""} {
		s := pages([]string{"x-y/a", "x/a"}, []string{"x/c", "xa/a"})
		if got, err := s.find(t.Context(), key); got != want || err != nil {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
}

func TestStreamRefusesDisorder(t *testing.T) {
	if _, err := all(t, pages([]string{"b/1"}, []string{"a/1"})); err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("a list out of order is taken: %v", err)
	}
}

// An expired token goes on with the one that the server offers; without an
// offer the list is an error, never complete (input D05).
func TestStreamAfterAnExpiredToken(t *testing.T) {
	for _, offered := range []string{"xx", ""} {
		s := pages([]string{"a/1"}, []string{"a/2"}, []string{"a/3"})
		inner := s.page
		s.page = func(ctx context.Context, token string) ([]entry[string], string, error) {
			if token == "x" {
				gone := apierrors.NewResourceExpired("the token is too old")
				gone.ErrStatus.Continue = offered
				return nil, "", gone
			}
			return inner(ctx, token)
		}
		keys, err := all(t, s)
		if complete := slices.Equal(keys, []string{"a/1", "a/3"}) && err == nil; complete != (offered != "") {
			t.Errorf("offered %q: %v, %v", offered, keys, err)
		}
		if offered == "" && !apierrors.IsResourceExpired(errors.Unwrap(err)) {
			t.Errorf("%v", err)
		}
	}
}
