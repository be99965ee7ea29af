package main

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/clusteredcache/reconcile/report"
)

// console writes whole lines to stderr. On a terminal it keeps one status line
// below them, which it overwrites. Goroutines may share a console.
type console struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	status   string
}

// eraseLine returns to the start of the line and clears it.
const eraseLine = "\r\x1b[K"

// Write writes whole lines above the status line. The error is always nil,
// because a pass continues when stderr is closed.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != "" {
		_, _ = io.WriteString(c.w, eraseLine)
	}
	_, _ = c.w.Write(b)
	if c.status != "" {
		_, _ = io.WriteString(c.w, c.status)
	}
	return len(b), nil
}

// say writes one line.
func (c *console) say(sentence string) {
	_, _ = fmt.Fprintln(c, report.OneLine(sentence))
}

// setStatus replaces the status line. An empty line removes it.
func (c *console) setStatus(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if line == c.status {
		return
	}
	_, _ = io.WriteString(c.w, eraseLine+line)
	c.status = line
}

// logTo makes every logger of the process write to w: the default one, that of
// client-go and that of controller-runtime.
func logTo(w io.Writer) {
	handler := slog.NewTextHandler(w, nil)
	slog.SetDefault(slog.New(handler))
	klog.SetSlogLogger(slog.New(handler))
	crlog.SetLogger(logr.FromSlogHandler(handler))
}
