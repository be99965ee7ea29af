package kube

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Clock is the API server's. A pass compares with times that the server and
// its controllers wrote, and machines with a wrong clock start passes too: one
// that is ahead would cut a drain short, and find every rollout overdue. It
// goes by the Date of the first answer; until then, and as a nil *Clock, it is
// the machine's own.
type Clock struct {
	// Machine is the clock that is put right; nil: time.Now.
	Machine func() time.Time

	mu    sync.Mutex
	known bool
	ahead time.Duration // of the server
}

// tolerated is a difference that does no harm, and more than the time of an
// answer can be told from a Date in whole seconds.
const tolerated = 2 * time.Second

// Now is the server's time.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine().Add(c.ahead)
}

func (c *Clock) machine() time.Time {
	if c != nil && c.Machine != nil {
		return c.Machine()
	}
	return time.Now()
}

// hear takes the time from the answer to a request that was sent at sent.
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
	slog.Warn("the clock of this machine is not that of the API server, which is used instead", "server is ahead by", c.ahead.Round(time.Second))
}
