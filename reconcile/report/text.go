package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.com/clusteredcache/reconcile/plan"
)

// TextOptions of Text.
type TextOptions struct {
	// Preview: the fleet is of a dry run, and the text speaks of what would be.
	Preview bool
	// Color puts ANSI colours in.
	Color bool
	// Verbose adds status writes and the number of requests.
	Verbose bool
}

// The most characters that one sentence (of a cluster: a webhook may answer
// with a page) and one value take in a line.
const (
	sentenceLimit = 600
	valueLimit    = 200
)

// Text writes f for people: a headline for each cache, a line for each step
// and hold, and at last the stable line of the package documentation. The
// error is w's.
func Text(w io.Writer, f Fleet, o TextOptions) error {
	t := &text{Writer: bufio.NewWriter(w), options: o}
	for _, r := range sorted(f.Caches) {
		t.cache(r)
	}
	if o.Verbose {
		t.requests(f.Requests)
	}
	if f.TimedOut {
		t.line(yellow, "Timed out: --timeout ended before everything settled.")
	}
	if f.Interrupted {
		t.line(yellow, "Interrupted: nothing new was started after the signal.")
	}
	summary := Summarize(f)
	if o.Preview {
		t.line(bold, summary.Plan())
	} else {
		t.line(bold, summary.Done())
	}
	return t.Flush()
}

// sorted returns the reports by namespace and name.
func sorted(reports []plan.Report) []plan.Report {
	return slices.SortedStableFunc(slices.Values(reports), func(a, b plan.Report) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// text keeps the first error of its writer until Flush.
type text struct {
	*bufio.Writer
	options TextOptions
}

// color is the number of an ANSI attribute; 0: none.
type color int

const (
	bold   color = 1
	red    color = 31
	green  color = 32
	yellow color = 33
)

func (t *text) paint(c color, s string) string {
	if !t.options.Color || c == 0 {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, s)
}

func (t *text) line(c color, s string) {
	_, _ = t.WriteString(t.paint(c, s) + "\n")
}

var stateColors = map[plan.State]color{
	plan.Settled:     green,
	plan.Progressing: yellow,
	plan.Stalled:     red,
	plan.NotDone:     red,
}

func (t *text) cache(r plan.Report) {
	state := string(r.Verdict.State)
	if r.Verdict.Reason != "" {
		state += " (" + OneLine(r.Verdict.Reason) + ")"
	}
	headline := OneLine(r.Namespace+"/"+r.Name) + ": " + t.paint(stateColors[r.Verdict.State], state)
	if r.Verdict.Message != "" {
		headline += ": " + shortLine(r.Verdict.Message, sentenceLimit)
	}
	t.line(0, headline)
	for _, o := range r.Outcomes {
		t.outcome(o)
	}
	for _, step := range left(r) {
		t.step(step, "not attempted")
	}
	for _, h := range r.Plan.Holds {
		c := yellow
		if h.Class == plan.Blocked {
			c = red
		}
		t.line(c, fmt.Sprintf("  ! %s (%s): %s: %s", OneLine(h.Reason), OneLine(string(h.Class)),
			OneLine(h.Target.String()), shortLine(h.Message, sentenceLimit)))
	}
	if t.options.Verbose && r.StatusWritten && !t.options.Preview {
		t.line(0, "  status written")
	}
}

func (t *text) outcome(o plan.Outcome) {
	t.step(o.Step, string(o.Result))
	if o.Err != nil {
		t.line(red, "      error: "+shortLine(o.Err.Error(), sentenceLimit))
	}
	if o.Warning != "" {
		t.line(yellow, "      warning: "+shortLine(o.Warning, sentenceLimit))
	}
}

var (
	signs      = map[plan.Action]string{plan.ActionCreate: "+", plan.ActionChange: "~"}
	signColors = map[string]color{"+": green, "~": yellow, "-": red}
)

// step writes the line of a step, and its changes below. In a preview the sign
// says it all, unless the step would not go as planned.
func (t *text) step(s plan.Step, result string) {
	sign := cmp.Or(signs[s.Action], "-")
	line := "  " + t.paint(signColors[sign], sign) + " " + OneLine(s.Target.String())
	asPlanned := result == "not attempted" || result == string(expected[s.Action])
	if !t.options.Preview || !asPlanned {
		line += " " + OneLine(result)
	} else if s.Action == plan.ActionRelease {
		line += " release"
	}
	line += restarts(int(s.Restarts))
	if s.Reason != "" {
		line += ": " + shortLine(s.Reason, sentenceLimit)
	}
	t.line(0, line)
	for _, c := range s.Changes {
		t.change(masked(c))
	}
}

// change writes one line for the live value and one for the wanted one. The
// managers stand where they explain most: behind the value that they set.
func (t *text) change(c plan.Change) {
	path, by := OneLine(c.Path), takenBy(c.By)
	if c.From == c.To {
		t.line(yellow, strings.TrimSuffix("      = "+path+": "+shortLine(c.From, valueLimit), " ")+by)
		return
	}
	if c.From != "" {
		t.line(red, "      - "+path+": "+shortLine(c.From, valueLimit)+by)
		by = ""
	}
	if c.To != "" {
		t.line(green, "      + "+path+": "+shortLine(c.To, valueLimit)+by)
	}
}

func takenBy(managers []plan.Manager) string {
	if len(managers) == 0 {
		return ""
	}
	parts := make([]string, 0, len(managers))
	for _, m := range managers {
		part := OneLine(m.Name) + ", " + OneLine(m.Operation)
		if !m.Time.IsZero() {
			part += ", " + m.Time.UTC().Format(timeFormat)
		}
		parts = append(parts, part)
	}
	return " (taken by " + strings.Join(parts, "; ") + ")"
}

func (t *text) requests(counts map[string]int) {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		total += counts[name]
		t.line(0, fmt.Sprintf("%8d %s", counts[name], OneLine(name)))
	}
	t.line(0, fmt.Sprintf("%8d requests in all", total))
}
