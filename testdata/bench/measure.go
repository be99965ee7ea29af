package main

import (
	"context"
	"fmt"
	"log"
	"path/filepath"
	"slices"
	"time"

	"example.com/clusteredcache/testdata/bench/cost"
	"example.com/clusteredcache/testdata/bench/recording"
)

// measurement is the cost of a row.
type measurement struct {
	row
	requests map[string]int // by verb
	received int64          // the size of all answers' bodies in bytes
	costs    []cost.Cost
	// scale is the number of caches in the fleet, divided by the number of caches
	// that the row ran on.
	scale float64
}

// total returns the number of requests.
func (m *measurement) total() int {
	n := 0
	for _, count := range m.requests {
		n += count
	}
	return n
}

// listsPerPass is the number of lists that a pass reads.
const listsPerPass = 5

// median returns the median cost of a row, each quantity by itself.
func (m *measurement) median() cost.Cost {
	return cost.Cost{
		Wall:   middle(m.costs, func(c cost.Cost) time.Duration { return c.Wall }),
		CPU:    middle(m.costs, func(c cost.Cost) time.Duration { return c.CPU }),
		Memory: middle(m.costs, func(c cost.Cost) int64 { return c.Memory }),
	}
}

func middle[T int64 | time.Duration](costs []cost.Cost, of func(cost.Cost) T) T {
	var values []T
	for _, c := range costs {
		values = append(values, of(c))
	}
	slices.Sort(values)
	if len(values)%2 == 0 {
		return (values[len(values)/2-1] + values[len(values)/2]) / 2
	}
	return values[len(values)/2]
}

// fleetResult is the table of one fleet.
type fleetResult struct {
	caches, sample int
	measurements   []*measurement
}

func (f fleetResult) row(name string) *measurement {
	for _, m := range f.measurements {
		if m.name == name {
			return m
		}
	}
	panic("there is no row " + name)
}

// fleet populates a control plane with n caches and measures the rows.
func (b *bench) fleet(ctx context.Context, c *controlPlane, n int) (fleetResult, error) {
	result := fleetResult{caches: n, sample: sampleOf(n)}
	if err := b.populate(ctx, c, n); err != nil {
		return result, err
	}
	children := filepath.Join(b.dir, "children.json")
	if err := c.writeChildren(ctx, result.sample, children); err != nil {
		return result, err
	}
	recorded := filepath.Join(b.dir, "lists.json")
	rows := b.rows(c, n, recorded, children)
	if err := b.recordLists(ctx, c, rows, recorded); err != nil {
		return result, err
	}
	for _, r := range rows {
		m := &measurement{row: r, scale: 1}
		if r.sampled {
			m.scale = float64(n) / float64(result.sample)
		}
		log.Print("counting: ", r.name)
		if err := b.count(ctx, c, m); err != nil {
			return result, err
		}
		result.measurements = append(result.measurements, m)
	}
	return result, b.rounds(ctx, c, result.measurements)
}

// recordLists writes the requests of a converged pass to file.
func (b *bench) recordLists(ctx context.Context, c *controlPlane, rows []row, file string) error {
	m := &measurement{row: rows[slices.IndexFunc(rows, func(r row) bool { return r.name == rowPass })]}
	requests, err := b.throughProxy(ctx, c, m)
	if err != nil {
		return err
	}
	return recording.Write(file, requests)
}

// count runs a row once through the proxy.
func (b *bench) count(ctx context.Context, c *controlPlane, m *measurement) error {
	requests, err := b.throughProxy(ctx, c, m)
	if err != nil {
		return err
	}
	m.requests = verbs(requests)
	if m.check == nil {
		return nil
	}
	report, err := b.report()
	if err != nil {
		return err
	}
	// The product reads pages ahead. At its end it cancels such requests, and they
	// may never have reached the proxy.
	if own := report.total(); own < len(requests) || own > len(requests)+listsPerPass {
		return fmt.Errorf("%s reports %d requests, and sent %d", m.name, own, len(requests))
	}
	return nil
}

// verbs counts requests by verb.
func verbs(requests []recording.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Verb()]++
	}
	return counts
}

// once runs a row's process, with its functions before, check and after.
func (b *bench) once(ctx context.Context, r row, kubeconfig string) (cost.Cost, error) {
	if r.before != nil {
		if err := r.before(ctx); err != nil {
			return cost.Cost{}, err
		}
	}
	spent, err := b.run(ctx, r.process(kubeconfig))
	if err != nil {
		return spent, err
	}
	if r.check != nil {
		if err := r.check(); err != nil {
			return spent, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if r.after != nil {
		err = r.after(ctx)
	}
	return spent, err
}

// throughProxy runs a row through the proxy and returns its requests.
func (b *bench) throughProxy(ctx context.Context, c *controlPlane, m *measurement) ([]recording.Request, error) {
	c.proxy.take()
	spent, err := b.once(ctx, m.row, c.proxy.kubeconfig)
	if err != nil {
		return nil, err
	}
	requests, received := c.proxy.take()
	m.received = received
	if m.rounds == 0 {
		m.costs = append(m.costs, spent)
	}
	return requests, nil
}

// rounds measures all rows one after the other, until each has had its rounds.
func (b *bench) rounds(ctx context.Context, c *controlPlane, all []*measurement) error {
	most := 0
	for _, m := range all {
		most = max(most, m.rounds)
	}
	for round := range most {
		log.Printf("round %d of %d", round+1, most)
		for _, m := range all {
			if round >= m.rounds {
				continue
			}
			spent, err := b.once(ctx, m.row, c.kubeconfig)
			if err != nil {
				return err
			}
			m.costs = append(m.costs, spent)
		}
	}
	return nil
}
