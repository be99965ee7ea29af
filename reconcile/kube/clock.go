package kube

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Clock returns the time of the API server. A pass compares it with times that the
// server and its controllers wrote. The clock of the machine that runs the pass may
// be wrong. If it were ahead, a drain would be cut short and every rollout would
// look overdue.
//
// Clock uses the Date header of the first answer. Until then, and as a nil *Clock,
// it returns the time of the machine.
type Clock struct {
	// Machine is the clock that is corrected. If it is nil, it is time.Now.
	Machine func() time.Time

	mu    sync.Mutex
	known bool
	ahead time.Duration // how far the server is ahead of Machine
}

// tolerated is the clock skew that we ignore. It is larger than the rounding error
// of a Date header, which holds whole seconds.
const tolerated = 2 * time.Second

// Now returns the time of the server.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine().Add(c.ahead)
}

// machine returns the time of the machine.
func (c *Clock) machine() time.Time {
	if c != nil && c.Machine != nil {
		return c.Machine()
	}
	return time.Now()
}

// hear sets the clock by the answer to a request that was sent at sent.
func (c *Clock) hear(sent time.Time, answer *http.Response) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if c.known || err != nil {
		return
	}
	c.known = true
	least, most := date.Sub(c.machine()), date.Add(time.Second).Sub(sent)
	if least <= tolerated && most >= -tolerated {
		return
	}
	c.ahead = least
	slog.Warn("the clock of this machine is not that of the API server; the time of the server is used", "server is ahead by", c.ahead.Round(time.Second))
}
