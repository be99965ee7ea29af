package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"example.com/clusteredcache/reconcile/model"
)

// TextOptions are the options of Text and Standing.
type TextOptions struct {
	// Preview means that the fleet comes from a dry run. The text then describes
	// what would happen.
	Preview bool
	// Color adds ANSI colours.
	Color bool
	// Verbose adds status writes and the number of requests. In a preview it also
	// shows objects that would be created in full.
	Verbose bool
}

// Text writes f for people. Each cache gets a headline, and a line for each step
// and hold. The last line is the stable line of the package documentation. Text
// returns an error of w.
func Text(w io.Writer, f model.Fleet, o TextOptions) error {
	t := &text{Writer: bufio.NewWriter(w), options: o, view: view{preview: o.Preview, bodies: o.Verbose}}
	for _, r := range sorted(f.Caches) {
		t.cache(r)
	}
	if o.Verbose {
		t.requests(f.Requests)
	}
	if f.Waited {
		t.unsettled(f)
	}
	for _, sentence := range notices(f) {
		t.line(yellow, sentence)
	}
	t.line(bold, summaryLine(f, o.Preview))
	return t.Flush()
}

// notices returns sentences that explain why a report does not cover a whole run.
func notices(f model.Fleet) []string {
	var sentences []string
	if f.TimedOut {
		sentences = append(sentences, "Timed out: --timeout ended before everything settled.")
	}
	if f.Interrupted {
		sentences = append(sentences, "Interrupted: nothing new was started after the signal.")
	}
	if f.Incomplete != "" {
		sentences = append(sentences, "Incomplete: "+shortLine(f.Incomplete, sentenceLimit))
	}
	for _, ns := range slices.Sorted(maps.Keys(f.Unlisted)) {
		sentences = append(sentences, shortLine(fmt.Sprintf("Not listed: namespace %s: %v", ns, f.Unlisted[ns]), sentenceLimit))
	}
	return sentences
}

// summaryLine returns the stable line of the package documentation.
func summaryLine(f model.Fleet, preview bool) string {
	if preview {
		return Summarize(f).Plan()
	}
	return Summarize(f).Done()
}

// sorted returns the reports by namespace and name.
func sorted(reports []model.CacheReport) []model.CacheReport {
	return slices.SortedStableFunc(slices.Values(reports), func(a, b model.CacheReport) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// text writes lines. It keeps the first error of its writer until Flush.
type text struct {
	*bufio.Writer
	options TextOptions
	view    view
}

// color is the number of an ANSI attribute. 0 means no attribute.
type color int

const (
	bold   color = 1
	red    color = 31
	green  color = 32
	yellow color = 33
	cyan   color = 36
)

var (
	stateColors = map[model.State]color{
		model.Settled:     green,
		model.Progressing: yellow,
		model.Stalled:     red,
		model.NotDone:     red,
	}
	markColors  = map[string]color{"+": green, "~": yellow, "-": red, "=": yellow}
	noteColors  = map[string]color{"error": red, "warning": yellow, "note": yellow}
	classColors = map[model.Class]color{model.Waiting: yellow, model.Blocked: red}
)

// paint returns s in colour c, if colours are wanted.
func (t *text) paint(c color, s string) string {
	if !t.options.Color || c == 0 {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, s)
}

// line writes s as one line in colour c.
func (t *text) line(c color, s string) {
	_, _ = t.WriteString(t.paint(c, s) + "\n")
}

// cache writes the lines of one cache.
func (t *text) cache(r model.CacheReport) {
	headline := OneLine(r.Namespace+"/"+r.Name) + ": " + t.paint(stateColors[r.Verdict.State], t.view.state(r.Verdict))
	if message := verdictMessage(r); message != "" {
		headline += ": " + shortLine(message, sentenceLimit)
	}
	t.line(0, headline)
	for _, i := range t.view.items(r) {
		t.item(i)
	}
	for _, sentence := range t.view.effectsOf(r) {
		t.line(cyan, "  > "+sentence)
	}
	for _, h := range r.Plan.Holds {
		t.line(classColors[h.Class], "  ! "+holdText(h))
	}
	if t.options.Verbose && r.StatusWritten && !t.options.Preview {
		t.line(0, "  status written")
	}
}

// unsettled lists the caches that did not settle while the run waited, each with
// its reason.
func (t *text) unsettled(f model.Fleet) {
	began := false
	for _, r := range sorted(f.Caches) {
		if r.Verdict.State == model.Settled {
			continue
		}
		if !began {
			t.line(0, "Not settled:")
			began = true
		}
		t.line(0, "  "+OneLine(r.Namespace+"/"+r.Name)+": "+t.paint(stateColors[r.Verdict.State], t.view.state(r.Verdict))+": "+shortLine(r.Verdict.Message, sentenceLimit))
	}
}

// item writes an item with its lines and notes.
func (t *text) item(i item) {
	t.line(0, "  "+t.paint(markColors[i.mark], i.mark)+" "+i.text)
	for _, l := range i.lines {
		t.line(markColors[l.mark], "    "+cmp.Or(l.mark, " ")+" "+l.text)
	}
	for _, n := range i.notes {
		t.line(noteColors[n.kind], "    "+n.kind+": "+n.text)
	}
}

// requests writes the number of requests by verb and resource.
func (t *text) requests(counts map[string]int) {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		total += counts[name]
		t.line(0, fmt.Sprintf("%8d %s", counts[name], OneLine(name)))
	}
	t.line(0, fmt.Sprintf("%8d requests in all", total))
}
