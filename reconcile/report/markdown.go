package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"example.com/clusteredcache/reconcile/model"
)

// MarkdownOptions are the options of Markdown.
type MarkdownOptions struct {
	// Preview means that the fleet comes from a dry run.
	Preview bool
	// Verbose shows objects that would be created in full.
	Verbose bool
}

const (
	// markdownLimit is the greatest number of bytes of Markdown. A comment on
	// GitHub holds 65,536 characters, and the poster may add some text.
	markdownLimit = 60_000
	// tableLimit leaves at least half of that to the details.
	tableLimit = markdownLimit / 2
	// lastWords is the space for the sentences about what was left out.
	lastWords = 400
)

// Markdown writes f for a comment on a pull request or for the summary of a CI job.
// It writes the summary line, a table of the caches, and a part to unfold for each
// cache. The first line is an HTML comment by which a later run can find and
// replace the comment on the pull request.
//
// The text has at most 60,000 bytes. Whole caches that do not fit are left out and
// counted. Text from a cluster or a file never acts as markup. Markdown returns an
// error of w.
func Markdown(w io.Writer, f model.Fleet, o MarkdownOptions) error {
	m := &markdown{view: view{preview: o.Preview, bodies: o.Verbose}}
	m.head(f)
	reports := sorted(f.Caches)
	m.table(reports)
	m.details(reports)
	_, err := io.WriteString(w, m.String())
	return err
}

// markdown collects the text.
type markdown struct {
	strings.Builder
	view view
}

// head writes the title, the summary line and the notices.
func (m *markdown) head(f model.Fleet) {
	command := "reconcile"
	if m.view.preview {
		command = "diff"
	}
	fmt.Fprintf(&m.Builder, "<!-- clusteredcache %s -->\n## clusteredcache %s\n\n**%s**\n\n", command, command, summaryLine(f, m.view.preview))
	for _, sentence := range notices(f) {
		m.WriteString(prose(sentence) + "\n\n")
	}
	s := Summarize(f)
	if len(notices(f)) == 0 && !s.Changes() && s.Failed+s.Caches.Failed == 0 {
		m.WriteString("No changes.\n\n")
	}
}

// table writes a row for each cache.
func (m *markdown) table(reports []model.CacheReport) {
	if len(reports) == 0 {
		return
	}
	state, counts := "State", "Created | Changed | Deleted"
	if m.view.preview {
		state, counts = "State that follows", "Create | Change | Delete"
	}
	fmt.Fprintf(&m.Builder, "| Cache | %s | %s | Restarts | Held |\n|---|---|--:|--:|--:|--:|--:|\n", state, counts)
	for i, r := range reports {
		row := m.row(r)
		if m.Len()+len(row) > tableLimit {
			fmt.Fprintf(&m.Builder, "\nThe table leaves out %s: this report is cut at 60,000 bytes.\n", count(len(reports)-i, "more cache"))
			break
		}
		m.WriteString(row)
	}
	m.WriteString("\n")
}

// row returns the row of one cache.
func (m *markdown) row(r model.CacheReport) string {
	s := Summarize(model.Fleet{Total: 1, Caches: []model.CacheReport{r}})
	steps := s.Taken
	if m.view.preview {
		steps = s.planned()
	}
	name := prose(OneLine(r.Namespace + "/" + r.Name))
	if r.Edited() {
		name += map[bool]string{true: " (new)", false: " (edited)"}[r.Edit.New]
	}
	state := string(r.Verdict.State)
	if r.Verdict.Reason != "" {
		state += " (" + shortLine(r.Verdict.Reason, valueLimit) + ")"
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d |\n", name, prose(state),
		steps.Created, steps.Changed, steps.Deleted, steps.Restarts, s.Held)
}

// details writes a part to unfold for each cache that has more content than its
// row.
func (m *markdown) details(reports []model.CacheReport) {
	full, left := false, 0
	for _, r := range reports {
		part := m.part(r)
		full = full || m.Len()+len(part)+lastWords > markdownLimit
		switch {
		case part == "":
		case full:
			left++
		default:
			m.WriteString(part)
		}
	}
	if left > 0 {
		fmt.Fprintf(&m.Builder, "The details leave out %s: this report is cut at 60,000 bytes.\n", count(left, "more cache"))
	}
}

// part returns the part to unfold for one cache, or "" if its row is enough.
func (m *markdown) part(r model.CacheReport) string {
	block, list := m.block(r), m.list(r)
	if block == "" && list == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<details>\n<summary>%s: %s</summary>\n\n", prose(OneLine(r.Namespace+"/"+r.Name)), prose(m.view.state(r.Verdict)))
	if message := verdictMessage(r); message != "" {
		b.WriteString(prose(shortLine(message, sentenceLimit)) + "\n\n")
	}
	if block != "" {
		fence := fenceFor(block)
		b.WriteString(fence + "diff\n" + block + fence + "\n\n")
	}
	if list != "" {
		b.WriteString(list + "\n")
	}
	b.WriteString("</details>\n\n")
	return b.String()
}

// diffMarks translates our marks into those that the colouring of diffs knows.
var diffMarks = map[string]string{"~": "!", "": " "}

// block returns the steps of a cache as the lines of a diff.
func (m *markdown) block(r model.CacheReport) string {
	var b strings.Builder
	for _, i := range m.view.items(r) {
		b.WriteString(cmp.Or(diffMarks[i.mark], i.mark) + " " + i.text + "\n")
		for _, l := range i.lines {
			b.WriteString(cmp.Or(diffMarks[l.mark], l.mark) + "     " + l.text + "\n")
		}
	}
	return b.String()
}

// list returns the effects, the holds and the notes of a cache.
func (m *markdown) list(r model.CacheReport) string {
	var b strings.Builder
	for _, sentence := range m.view.effectsOf(r) {
		b.WriteString("- " + prose(sentence) + "\n")
	}
	for _, h := range r.Plan.Holds {
		b.WriteString("- **held**: " + prose(holdText(h)) + "\n")
	}
	for _, i := range m.view.items(r) {
		for _, n := range i.notes {
			b.WriteString("- **" + n.kind + "**: " + prose(i.name+": "+n.text) + "\n")
		}
	}
	return b.String()
}

// fenceFor returns a fence that block cannot close. It is longer than any run of
// backticks in block.
func fenceFor(block string) string {
	longest, run := 0, 0
	for _, r := range block {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return strings.Repeat("`", max(3, longest+1))
}

// prose escapes a line of text, so that Markdown and HTML show it as it is.
// Characters of markup become character references, which never act as markup. A
// zero-width space breaks up @names, #issues and addresses, because GitHub looks
// for them in the finished page. Otherwise text from a cluster could notify people.
func prose(line string) string { return proseEscapes.Replace(line) }

var proseEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;",
	"`", "&#96;", "*", "&#42;", "_", "&#95;", "~", "&#126;", `\`, "&#92;",
	"[", "&#91;", "]", "&#93;", "|", "&#124;", "$", "&#36;",
	"@", "@&#8203;", "#", "#&#8203;", "://", ":&#8203;//", "www.", "www.&#8203;",
)

// count returns n and what, in the plural unless n is 1.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
