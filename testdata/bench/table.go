package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// writeHead writes what the tables show.
func writeHead(w io.Writer, kubernetes string) {
	say(w, `Measured in one run on %d cores (%s/%s), %s, Kubernetes %s. The control plane (etcd and the API server) runs on the same
cores. Wall, CPU and memory are of the client process: medians of rounds in which every row takes its turn. *Received* are the bytes of
the answers' bodies, compressed where the client asked for it.

`, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), kubernetes)
}

// say writes to w. Its errors do not matter: w is standard output and memory.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func (f fleetResult) write(w io.Writer) {
	say(w, "**%s caches, %s children**\n\n", number(f.caches), number(f.caches*childrenPerCache))
	say(w, "| | requests | wall | CPU | peak memory | received | wall ÷ lists | CPU ÷ lists | wall ÷ `reconcile` |\n|---|---|---|---|---|---|---|---|---|\n")
	lists, pass := f.row(rowLists).median(), f.row(rowPass).median()
	for _, m := range f.measurements {
		c, about := m.median(), ""
		if m.scale > 1 {
			about = "≈ "
		}
		wall, cpu := time.Duration(float64(c.Wall)*m.scale), time.Duration(float64(c.CPU)*m.scale)
		say(w, "| %s | %s%s | %s%s | %s%s | %s | %s%s | %s | %s | %s |\n", m.name, about, m.verbs(),
			about, short(wall), about, short(cpu), volume(c.Memory), about, volume(int64(float64(m.received)*m.scale)),
			ratio(wall, lists.Wall), ratio(cpu, lists.CPU), ratio(wall, pass.Wall))
	}
	say(w, "\n")
	if f.sample < f.caches {
		say(w, "≈: run on the children of %s caches, and scaled up by their number; memory as it was then.\n\n", number(f.sample))
	}
}

// verbs returns the number of requests by verb, the most frequent first.
func (m *measurement) verbs() string {
	verbs := slices.SortedFunc(maps.Keys(m.requests), func(a, b string) int {
		if m.requests[a] != m.requests[b] {
			return m.requests[b] - m.requests[a]
		}
		return strings.Compare(a, b)
	})
	for i, verb := range verbs {
		verbs[i] = number(int(float64(m.requests[verb])*m.scale+0.5)) + " " + verb
	}
	return strings.Join(verbs, ", ")
}

// writeGrowth compares the converged pass over fleets of different size.
func writeGrowth(w io.Writer, fleets []fleetResult) {
	say(w, "**Growth** of the converged pass\n\n| caches | wall | wall for each cache | peak memory | |\n|---|---|---|---|---|\n")
	largest := int64(0)
	for _, f := range fleets {
		largest = max(largest, f.row(rowPass).median().Memory)
	}
	for _, f := range fleets {
		c := f.row(rowPass).median()
		say(w, "| %s | %s | %s | %s | %s |\n", number(f.caches), short(c.Wall), short(c.Wall/time.Duration(f.caches)),
			volume(c.Memory), strings.Repeat("█", int(20*c.Memory/largest)))
	}
	say(w, "\n")
}

func (c creationResult) write(w io.Writer) {
	say(w, "**Creation** of the children of %s new caches\n\n", number(c.caches))
	say(w, "| | requests | for each cache | wall | CPU | peak memory | wall ÷ loop |\n|---|---|---|---|---|---|---|\n")
	for _, m := range []*measurement{c.loop, c.product} {
		cost := m.median()
		say(w, "| %s | %s | %.2f | %s | %s | %s | %s |\n", m.name, m.verbs(), float64(m.total())/float64(c.caches),
			short(cost.Wall), short(cost.CPU), volume(cost.Memory), ratio(cost.Wall, c.loop.median().Wall))
	}
	say(w, "\n")
}

func ratio(a, b time.Duration) string {
	r := float64(a) / float64(b)
	if r >= 10 {
		return number(int(r + 0.5))
	}
	return fmt.Sprintf("%.2f", r)
}

// short returns a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d >= 100*time.Second:
		return number(int(d.Seconds()+0.5)) + " s"
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
}

func volume(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+512)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// number returns n with a comma between thousands.
func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return number(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// In the README the table stands between these comments.
const (
	blockBegin = "<!-- make bench writes this -->"
	blockEnd   = "<!-- end of what make bench writes -->"
)

// splitReadme returns the text before and after the table.
func splitReadme(file string) (before, after string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	before, rest, begins := strings.Cut(string(data), blockBegin)
	_, after, ends := strings.Cut(rest, blockEnd)
	if !begins || !ends {
		return "", "", fmt.Errorf("%s has no lines %q and %q to write the table between", file, blockBegin, blockEnd)
	}
	return before, after, nil
}

// writeReadme replaces the table in the README.
func writeReadme(file, table string) error {
	before, after, err := splitReadme(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+blockBegin+"\n\n"+table+"\n"+blockEnd+after), 0o644)
}
