// slowest reads what `go test -json` writes and prints what `go test` prints. Before
// the last line it names the slowest tests, so that nobody has to look for them.
//
//	go test -json ./... | go run ./testdata/slowest [-v]
//
// It exits with 1 when a package failed, or when none was tested.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// named is how many tests are named.
const named = 5

// event is what go test says; see `go doc test2json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

type test struct {
	pkg, name string
	seconds   float64
}

// printer prints what go test would.
type printer struct {
	out     io.Writer
	verbose bool

	said   map[string][]string // by package and test, until its end
	tests  []test
	last   string // the last package's lines, held back
	tested bool
	failed bool
}

func main() {
	verbose := flag.Bool("v", false, "print what passing tests say, too")
	flag.Parse()
	p := &printer{out: os.Stdout, verbose: *verbose, said: map[string][]string{}}
	if err := p.run(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

func (p *printer) run(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) > 0 && json.Unmarshal(line, &e) == nil:
			p.take(e)
		case len(line) > 0:
			_, _ = p.out.Write(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the events: %w", err)
		}
	}
	p.end()
	switch {
	case p.failed:
		return errors.New("tests failed")
	case !p.tested:
		return errors.New("no package was tested")
	}
	return nil
}

func (p *printer) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		p.print(e.Output)
	case "output":
		switch {
		case p.verbose && e.Test != "":
			p.print(e.Output)
			return
		case strings.HasPrefix(e.Output, "=== "):
			return // go test says that with -v only
		}
		p.said[key] = append(p.said[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			p.packageEnds(e)
			return
		}
		p.tests = append(p.tests, test{e.Package, e.Test, e.Elapsed})
		if e.Action == "fail" {
			p.print(strings.Join(p.said[key], ""))
		}
		delete(p.said, key)
	}
}

// packageEnds prints the lines of the package before, and holds back those of this one.
func (p *printer) packageEnds(e event) {
	p.tested = true
	p.failed = p.failed || e.Action == "fail"
	key, lines := e.Package+" ", ""
	for _, line := range p.said[key] {
		if line != "PASS\n" || p.verbose { // go test does not print that of many packages
			lines += line
		}
	}
	delete(p.said, key)
	if strings.HasPrefix(lines, "?") { // it has no tests
		p.print(lines)
		return
	}
	p.print(p.last)
	p.last = lines
	if e.Action != "fail" {
		return
	}
	// What was cut short by a panic or a timeout has no end of its own.
	for key, lines := range p.said {
		if strings.HasPrefix(key, e.Package+" ") {
			p.print(strings.Join(lines, ""))
			delete(p.said, key)
		}
	}
}

// end names the slowest tests, those at the top, and prints what was held back.
func (p *printer) end() {
	p.tests = slices.DeleteFunc(p.tests, func(t test) bool { return strings.Contains(t.name, "/") })
	slices.SortStableFunc(p.tests, func(a, b test) int { return cmp.Compare(b.seconds, a.seconds) })
	if len(p.tests) > 0 {
		p.print("slowest:\n")
	}
	for _, t := range p.tests[:min(named, len(p.tests))] {
		p.print(fmt.Sprintf("  %6.1f s  %s  %s\n", t.seconds, t.name, t.pkg))
	}
	p.print(p.last)
	if p.failed {
		p.print("FAIL\n")
	}
}

func (p *printer) print(text string) { _, _ = io.WriteString(p.out, text) }
