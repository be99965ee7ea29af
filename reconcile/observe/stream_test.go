package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// pages serves lists of keys, a page for each token "", "x", "xx", ...
func pages(lists ...[]string) pager[string] {
	return func(_ context.Context, token string, _ int64) (page[string], error) {
		var p page[string]
		at := len(token) // as many pages are behind us
		for _, key := range lists[at] {
			p.entries = append(p.entries, entry[string]{key: key, object: key})
		}
		if at+1 < len(lists) {
			p.next = token + "x"
		}
		return p, nil
	}
}

func all(t *testing.T, ask pager[string]) ([]string, error) {
	t.Helper()
	s := newStream("tests", ask)
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
		s := newStream("tests", pages([]string{"x-y/a", "x/a"}, []string{"x/c", "xa/a"}))
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

// expiring answers 410 in place of the page of token x, so many times, with an
// offer to go on from another.
func expiring(times int, offer string, ask pager[string]) pager[string] {
	return func(ctx context.Context, token string, limit int64) (page[string], error) {
		if token == "x" && times > 0 {
			times--
			expired := apierrors.NewResourceExpired("the token is too old")
			expired.ErrStatus.Continue = offer
			return page[string]{}, expired
		}
		return ask(ctx, token, limit)
	}
}

// A list whose token has expired goes on where it was, over newer objects or
// from its beginning, and names nothing twice. One that expires again and again
// is an error, never complete.
func TestStreamAfterAnExpiredToken(t *testing.T) {
	three := pages([]string{"a/1", "a/2"}, []string{"a/3"}, []string{"a/4"})
	// Begun anew, the first page may hold more or less than before.
	shifted := func(ctx context.Context, token string, limit int64) (page[string], error) {
		if token == "" {
			return pages([]string{"a/0", "a/2", "a/2b"}, nil)(ctx, token, limit)
		}
		return three(ctx, token, limit)
	}
	begun := false
	anew := func(ctx context.Context, token string, limit int64) (page[string], error) {
		if begun {
			return shifted(ctx, token, limit)
		}
		begun = true
		return three(ctx, token, limit)
	}
	for name, c := range map[string]struct {
		ask  pager[string]
		want []string
	}{
		"offered":     {expiring(1, "xx", three), []string{"a/1", "a/2", "a/4"}},
		"not offered": {expiring(1, "", three), []string{"a/1", "a/2", "a/3", "a/4"}},
		"changed":     {expiring(1, "", anew), []string{"a/1", "a/2", "a/2b", "a/3", "a/4"}},
	} {
		if keys, err := all(t, c.ask); err != nil || !slices.Equal(keys, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, keys, err, c.want)
		}
	}
	keys, err := all(t, expiring(100, "x", three))
	if !apierrors.IsResourceExpired(errors.Unwrap(err)) {
		t.Errorf("without end: %v, %v", keys, err)
	}
}

// Pages follow the size of what is in them, within bounds.
func TestPageSizes(t *testing.T) {
	const KiB = 1 << 10
	for _, c := range []struct {
		objects, bytes int
		want           int64
	}{
		{0, 0, 100},                // nothing is known
		{100, 400 * KiB, 64},       // 4 KiB each
		{100, 50 * KiB, 500},       // small objects
		{100, 100 * 100 * KiB, 20}, // 100 KiB each
	} {
		if got := follow(firstPage, c.objects, c.bytes); got != c.want {
			t.Errorf("after %d objects of %d bytes: %d, want %d", c.objects, c.bytes, got, c.want)
		}
	}
	var asked []int64
	ask := func(_ context.Context, token string, limit int64) (page[string], error) {
		asked = append(asked, limit)
		p := page[string]{objects: int(limit), bytes: int(limit) * 100 * KiB}
		if token != "xx" {
			p.next = token + "x"
		}
		return p, nil
	}
	if _, err := all(t, ask); err != nil || !slices.Equal(asked, []int64{100, 20, 20}) {
		t.Errorf("asked for %v, %v", asked, err)
	}
}
