package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

const (
	// wholeFleet is the size of the largest fleet of which kubectl and the loop over
	// objects get all children. Of a larger fleet they get the children of sampleSize
	// caches, and their cost is scaled up.
	wholeFleet = 1000
	sampleSize = 200
	// smallFleet is the size of the largest fleet with smallRounds rounds.
	smallFleet  = 1000
	smallRounds = 5
	largeRounds = 3
	// slowRounds is the number of rounds of the loop over objects.
	slowRounds = 2
)

// row is one row of a fleet's table.
type row struct {
	name    string
	process func(kubeconfig string) process
	// rounds is the number of rounds in which the row is measured. If it is 0, the
	// run that counts its requests is also the run that is measured.
	rounds int
	// sampled is set if the row gets only the children of a sample of a large fleet.
	sampled bool
	before  func(context.Context) error
	check   func() error
	after   func(context.Context) error
}

// These are the rows by their names in the table.
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

// rows returns the rows of a converged fleet of n caches. recording is the file with
// the product's lists, children the file with the (sampled) children.
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
