package report

import (
	"bufio"
	"fmt"
	"io"

	"example.com/clusteredcache/reconcile/model"
)

// Standing writes how the caches of f stand, one line for each, and at the end how
// many are in which state. Verbose adds a line for each observed node and for each
// hold. Standing returns an error of w.
func Standing(w io.Writer, f model.Fleet, o TextOptions) error {
	t := &text{Writer: bufio.NewWriter(w), options: o, view: view{}}
	for _, r := range sorted(f.Caches) {
		t.standing(r)
	}
	if o.Verbose {
		t.requests(f.Requests)
	}
	for _, sentence := range notices(f) {
		t.line(yellow, sentence)
	}
	t.line(bold, Summarize(f).cachesLine())
	return t.Flush()
}

// standing writes the lines of one cache.
func (t *text) standing(r model.CacheReport) {
	line := OneLine(r.Namespace+"/"+r.Name) + ": "
	if s := r.Standing; s != nil {
		line += fmt.Sprintf("%d/%d ready, %s, ", s.Ready, s.Size, versions(s))
	}
	line += t.paint(stateColors[r.Verdict.State], t.view.state(r.Verdict))
	if r.Verdict.Message != "" {
		line += ": " + shortLine(r.Verdict.Message, sentenceLimit)
	}
	t.line(0, line)
	if !t.options.Verbose {
		return
	}
	if r.Standing != nil {
		for _, n := range r.Standing.Nodes {
			t.line(0, "    "+nodeLine(n))
		}
	}
	for _, h := range r.Plan.Holds {
		t.line(classColors[h.Class], "  ! "+holdText(h))
	}
}

// versions returns the versions that run. If they differ from the wanted version,
// it adds that.
func versions(s *model.Standing) string {
	switch s.Runs {
	case s.Wants:
		return OneLine(s.Runs)
	case "":
		return "nothing -> " + OneLine(s.Wants)
	}
	return OneLine(s.Runs) + " -> " + OneLine(s.Wants)
}

// nodeLine returns the line of one node.
func nodeLine(n model.Node) string {
	line := OneLine(n.Name) + ": " + OneLine(n.State)
	if n.Version != "" {
		line += ", " + OneLine(n.Version)
	}
	if n.Version != "" && !n.Newest {
		line += " (older revision)"
	}
	if n.Volume != "" {
		line += ", volume " + OneLine(n.Volume)
	}
	if n.Message != "" {
		line += ": " + shortLine(n.Message, sentenceLimit)
	}
	return line
}

// cachesLine returns the number of caches in each state.
func (s Summary) cachesLine() string {
	c, caches := s.Caches, "caches"
	if c.Total == 1 {
		caches = "cache"
	}
	return fmt.Sprintf("%d %s: %d settled, %d progressing, %d stalled, %d failed", c.Total, caches, c.Settled, c.Progressing, c.Stalled, c.Failed) + unlisted(s.Unlisted)
}
