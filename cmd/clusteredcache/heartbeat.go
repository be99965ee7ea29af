package main

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/clusteredcache/reconcile"
)

// The intervals between two beats, on a terminal and in a log.
const (
	redrawEvery = 100 * time.Millisecond
	logEvery    = 10 * time.Second
)

// heartbeat shows the progress of a run at regular intervals.
type heartbeat struct {
	console *console
	started time.Time
	end     chan struct{}
	ended   sync.WaitGroup

	mu   sync.Mutex
	last reconcile.Progress
}

func startHeartbeat(c *console) *heartbeat {
	h := &heartbeat{console: c, started: time.Now(), end: make(chan struct{})}
	every := logEvery
	if c.terminal {
		every = redrawEvery
	}
	h.ended.Go(func() { h.beat(every) })
	return h
}

// update stores the progress that the next beat shows.
func (h *heartbeat) update(p reconcile.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = p
}

// stop ends the heartbeat and removes its line.
func (h *heartbeat) stop() {
	close(h.end)
	h.ended.Wait()
	if h.console.terminal {
		h.console.setStatus("")
	}
}

func (h *heartbeat) beat(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-h.end:
			return
		case <-ticker.C:
			h.show()
		}
	}
}

func (h *heartbeat) show() {
	h.mu.Lock()
	p := h.last
	h.mu.Unlock()
	elapsed := time.Since(h.started).Round(time.Second)
	if h.console.terminal {
		h.console.setStatus(fmt.Sprintf("%d done, %d failed, %d waiting, %s", p.Done, p.Failed, p.Waiting, elapsed))
		return
	}
	slog.Info("under way", "done", p.Done, "failed", p.Failed, "waiting", p.Waiting, "elapsed", elapsed)
}
