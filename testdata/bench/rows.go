package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

const (
	// wholeFleet is the largest fleet of which kubectl and the loop over
	// objects get all children; of larger ones they get those of
	// sampleSize caches, and what they cost is scaled up.
	wholeFleet = 1000
	sampleSize = 200
	// smallFleet is the largest that gets all rounds.
	smallFleet  = 1000
	smallRounds = 5
	largeRounds = 3
	// slowRounds are those of the loop over objects.
	slowRounds = 2
)

// row is one row of a fleet's table.
type row struct {
	name    string
	process func(kubeconfig string) process
	// rounds in which it is measured; 0: the run in which its requests are
	// counted is measured too.
	rounds int
	// sampled: it got the children of a sample of the caches, if that is smaller.
	sampled bool
	before  func(context.Context) error
	check   func() error
	after   func(context.Context) error
}

// The rows, by the names that the table has for them.
const (
	rowLists     = "the lists alone"
	rowPass      = "`reconcile`"
	rowDiff      = "`diff`"
	rowDrift     = "`reconcile`, 1 % drifted"
	rowPerObject = "GET and dry-run apply of each object"
	rowAtATime   = "the same, 10 at a time"
	rowDiffKube  = "`kubectl diff --server-side`"
	rowApplyKube = "`kubectl apply --server-side`"
	rowOperator  = "operator, restarted"
)

func sampleOf(n int) int {
	if n <= wholeFleet {
		return n
	}
	return sampleSize
}

// rows are those of a converged fleet of n. recording and children are the
// files of the product's lists and of the (sampled) children.
func (b *bench) rows(c *controlPlane, n int, recording, children string) []row {
	rounds := largeRounds
	if n <= smallFleet {
		rounds = smallRounds
	}
	product := func(command ...string) func(string) process {
		return func(kubeconfig string) process {
			return process{b.product(), append(command, "-A", "-o", "json="+b.reportFile(), "--kubeconfig", kubeconfig)}
		}
	}
	kubectl := func(command ...string) func(string) process {
		return func(kubeconfig string) process {
			return process{filepath.Join(b.assets, "kubectl"), append(command, "--server-side", "--field-manager=clusteredcache",
				"--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(b.dir, "kubectl"), "-f", children)}
		}
	}
	load := func(name string, args ...string) func(string) process {
		return func(kubeconfig string) process {
			return process{b.own("loads"), append([]string{name, kubeconfig}, args...)}
		}
	}
	converged := func() error { return b.checkConverged(n) }
	drifted := 0
	return []row{
		{name: rowLists, process: load("lists", recording), rounds: rounds},
		{name: rowPass, process: product("reconcile", "--yes"), rounds: rounds, check: converged},
		{name: rowDiff, process: product("diff"), rounds: rounds, check: converged},
		{name: rowDrift, process: product("reconcile", "--yes"), rounds: rounds,
			before: func(ctx context.Context) (err error) { drifted, err = c.drift(ctx); return err },
			check:  func() error { return b.checkRepaired(drifted) },
			after:  func(ctx context.Context) error { return b.converge(ctx, c) }},
		{name: rowOperator, rounds: rounds, process: func(kubeconfig string) process {
			return process{b.own("operator"), []string{kubeconfig, strconv.Itoa(n)}}
		}},
		{name: rowPerObject, process: load("perobject", children, "1"), rounds: slowRounds, sampled: true},
		{name: rowAtATime, process: load("perobject", children, "10"), rounds: slowRounds, sampled: true},
		{name: rowDiffKube, process: kubectl("diff"), sampled: true},
		{name: rowApplyKube, process: kubectl("apply"), sampled: true},
	}
}

// checkRepaired makes sure that a pass found and repaired all drift.
func (b *bench) checkRepaired(drifted int) error {
	r, err := b.report()
	if err != nil {
		return err
	}
	if r.Summary.Changed != drifted || r.Summary.Failed != 0 {
		return fmt.Errorf("a pass repaired %d of %d StatefulSets, and failed %d times", r.Summary.Changed, drifted, r.Summary.Failed)
	}
	return nil
}
