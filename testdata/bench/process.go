package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/clusteredcache/testdata/bench/cost"
)

// process is a program to be measured.
type process struct {
	program string
	args    []string
}

// run runs a process to its end. An exit status other than 0 is an error, because a
// process that failed must not be measured.
func (b *bench) run(ctx context.Context, p process) (cost.Cost, error) {
	var c cost.Cost
	file := filepath.Join(b.dir, "cost.json")
	cmd := exec.CommandContext(ctx, b.own("meter"), append([]string{file, p.program}, p.args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // meter forwards it
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return c, fmt.Errorf("%s: %w: %s", p, err, stderr.Bytes())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	if c.Exit != 0 {
		return c, fmt.Errorf("%s: exit status %d: %s%s", p, c.Exit, tail(stdout.Bytes()), tail(stderr.Bytes()))
	}
	return c, nil
}

func (p process) String() string {
	return filepath.Base(p.program) + " " + strings.Join(p.args[:min(2, len(p.args))], " ")
}

// tail returns the end of an output, which has the error.
func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }

// productReport is what we read of the product's JSON report.
type productReport struct {
	Summary struct {
		Changed int `json:"changed"`
		Created int `json:"created"`
		Failed  int `json:"failed"`
		Caches  struct {
			Total int `json:"total"`
		} `json:"caches"`
	} `json:"summary"`
	Requests map[string]int `json:"requests"`
}

// total returns the number of requests.
func (r productReport) total() int {
	n := 0
	for _, count := range r.Requests {
		n += count
	}
	return n
}

func (b *bench) reportFile() string { return filepath.Join(b.dir, "report.json") }

func (b *bench) report() (productReport, error) {
	var r productReport
	data, err := os.ReadFile(b.reportFile())
	if err != nil {
		return r, err
	}
	err = json.Unmarshal(data, &r)
	return r, err
}

// checkConverged makes sure that the product found n caches and only read lists.
func (b *bench) checkConverged(n int) error {
	r, err := b.report()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		if !strings.HasPrefix(name, "list ") {
			return fmt.Errorf("a pass over a converged fleet sent %d times %q", r.Requests[name], name)
		}
	}
	if r.Summary.Caches.Total != n {
		return fmt.Errorf("a pass saw %d caches of %d", r.Summary.Caches.Total, n)
	}
	return nil
}
