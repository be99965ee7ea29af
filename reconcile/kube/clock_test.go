package kube

import (
	"net/http"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	sent := time.Date(2026, 11, 30, 12, 0, 0, 400_000_000, time.UTC)
	received := sent.Add(200 * time.Millisecond)
	for _, tc := range []struct {
		name, date string
		ahead      time.Duration
	}{
		{"right", "Mon, 30 Nov 2026 12:00:00 GMT", 0},
		{"a little behind", "Mon, 30 Nov 2026 11:59:58 GMT", 0},
		{"a little ahead", "Mon, 30 Nov 2026 12:00:02 GMT", 0},
		{"server ahead", "Mon, 30 Nov 2026 18:00:00 GMT", 6*time.Hour - 600*time.Millisecond},
		{"server behind", "Mon, 30 Nov 2026 06:00:00 GMT", -6*time.Hour - 600*time.Millisecond},
		{"no date", "", 0},
	} {
		now := received
		c := &Clock{Machine: func() time.Time { return now }}
		c.hear(sent, &http.Response{Header: http.Header{"Date": {tc.date}}})
		if got := c.Now().Sub(now); got != tc.ahead {
			t.Errorf("%s: ahead by %s, want %s", tc.name, got, tc.ahead)
		}
		// The first answer decides: within a run, time makes no jumps.
		c.hear(sent, &http.Response{Header: http.Header{"Date": {"Mon, 30 Nov 2026 23:00:00 GMT"}}})
		if got := c.Now().Sub(now); tc.date != "" && got != tc.ahead {
			t.Errorf("%s: a later answer moved the clock to %s", tc.name, got)
		}
	}
}
