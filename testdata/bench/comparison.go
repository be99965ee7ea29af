package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"example.com/clusteredcache/testdata/bench/cost"
)

var nanoseconds = regexp.MustCompile(`(?m)^BenchmarkConverged\S*\s+\d+\s+([0-9.]+) ns/op`)

// comparison runs the Go benchmark of a converged cache's plan. It returns the time
// for each child.
func (b *bench) comparison(ctx context.Context) (time.Duration, error) {
	log.Print("the comparison of one cache, in memory")
	cmd := exec.CommandContext(ctx, b.own("plan.test"), "-test.run", "^$", "-test.bench", "^BenchmarkConverged$")
	cmd.Dir, cmd.Stderr = filepath.Join(b.root, "reconcile", "plan"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("BenchmarkConverged: %w: %s", err, out)
	}
	match := nanoseconds.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("BenchmarkConverged: no time in %q", out)
	}
	ns, err := strconv.ParseFloat(string(match[1]), 64)
	return time.Duration(ns) / childrenPerCache, err
}

// start returns how long the product takes to start and to end (the median of many
// runs), and its size in bytes.
func (b *bench) start(ctx context.Context) (time.Duration, int64, error) {
	info, err := os.Stat(b.product())
	if err != nil {
		return 0, 0, err
	}
	var costs []cost.Cost
	for range 21 {
		c, err := b.run(ctx, process{b.product(), []string{"version"}})
		if err != nil {
			return 0, 0, err
		}
		costs = append(costs, c)
	}
	return middle(costs, func(c cost.Cost) time.Duration { return c.Wall }), info.Size(), nil
}
