package report

import (
	"cmp"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// The most characters that one sentence (of a cluster: a webhook may answer
// with a page) and one value take in a line.
const (
	sentenceLimit = 600
	valueLimit    = 200
)

// view says a report in lines, which Text and Markdown then dress. Nothing in
// them can end the line or move the cursor.
type view struct {
	// preview: it is of a dry run, and speaks of what would be.
	preview bool
	// bodies: a preview shows created objects in full.
	bodies bool
}

// item is one object: a cache that a manifest edits, or a step.
type item struct {
	mark  string // + ~ - =
	name  string // the object
	text  string // name and all that is said of it
	lines []line
	notes []note
}

// line is a field of an item.
type line struct {
	mark string // + - =, or none for a line without a field
	text string
}

// note is a sentence about an item.
type note struct {
	kind string // note, error, warning
	text string
}

// items are what a report says of the cache and its children, the edit first.
func (v view) items(r model.CacheReport) []item {
	var items []item
	if r.Edited() {
		items = append(items, v.edit(r))
	}
	for _, o := range outcomes(r) {
		items = append(items, v.outcome(o))
	}
	return items
}

// edit shows what a manifest changes. Our manager owns nothing of a spec: the
// mask is that of an object of which nothing is ours.
func (v view) edit(r model.CacheReport) item {
	i := item{mark: "~", name: OneLine(cacheOf(r).String())}
	if r.Edit.New {
		i.mark = "+"
	}
	i.text = i.name + " (by the manifest)"
	if r.Edit.Estimate != "" {
		i.text += estimated(r.Edit.Estimate)
	}
	for _, c := range r.Edit.Changes {
		i.lines = append(i.lines, changeLines(&mask{}, c, "set by")...)
	}
	return i
}

var marks = map[model.Action]string{
	model.ActionCreate: "+", model.ActionChange: "~", model.ActionReplace: "~", model.ActionOwn: "~",
	model.ActionDelete: "-", model.ActionFinalize: "-",
}

func (v view) outcome(o model.Outcome) item {
	s := o.Step
	i := item{mark: cmp.Or(marks[s.Action], "~"), name: OneLine(s.Target.String())}
	if o.Result == model.Unchanged {
		i.mark = "="
	}
	i.text = i.name
	if word := v.word(o); word != "" {
		i.text += " " + OneLine(word)
	}
	if writes(o) {
		i.text += restarts(int(s.Restarts))
	}
	if s.Reason != "" {
		i.text += ": " + shortLine(s.Reason, sentenceLimit)
	}
	if o.Result == model.Estimated {
		i.text += estimated(o.Estimate)
	}
	switch {
	case o.Result == model.Unchanged:
		// The server's answer is that nothing changes.
	case v.preview && v.bodies && s.Action == model.ActionCreate && s.Intent != nil:
		i.lines = bodyLines(s.Intent)
	default:
		m := &mask{live: s.Live}
		for _, c := range s.Changes {
			i.lines = append(i.lines, changeLines(m, c, "taken by")...)
		}
	}
	if s.Downgrade != "" && writes(o) && !v.preview { // a preview tells it among the effects
		i.notes = append(i.notes, note{"note", shortLine(s.Downgrade, sentenceLimit)})
	}
	if o.Err != nil {
		i.notes = append(i.notes, note{"error", shortLine(o.Err.Error(), sentenceLimit)})
	}
	if o.Warning != "" {
		i.notes = append(i.notes, note{"warning", shortLine(o.Warning, sentenceLimit)})
	}
	return i
}

func estimated(reason string) string {
	return " (estimated: " + shortLine(reason, sentenceLimit) + ")"
}

// word is what became of a step. In a preview the mark says it all, unless the
// step would not go as planned.
func (v view) word(o model.Outcome) string {
	switch {
	case !v.preview && o.Result == notAttempted:
		return "not attempted"
	case !v.preview:
		return string(o.Result)
	case o.Step.Action == model.ActionFinalize && writes(o):
		return "finalize"
	case o.Result == notAttempted, o.Result == model.Estimated, o.Result == expected[o.Step.Action]:
		return ""
	}
	return string(o.Result)
}

// changeLines is one line for the live value and one for the wanted one. The
// managers stand where they explain most: behind the value that they set.
func changeLines(m *mask, c fields.Change, verb string) []line {
	same := c.From == c.To
	c, hidden := m.change(c)
	path, by := OneLine(c.Path), managers(verb, c.By)
	if same && !hidden {
		return []line{{"=", strings.TrimSuffix(path+": "+shortLine(c.From, valueLimit), " ") + by}}
	}
	var lines []line
	if c.From != "" {
		lines = append(lines, line{"-", path + ": " + shortLine(c.From, valueLimit) + by})
		by = ""
	}
	if c.To != "" {
		lines = append(lines, line{"+", path + ": " + shortLine(c.To, valueLimit) + by})
	}
	return lines
}

func managers(verb string, by []fields.Manager) string {
	if len(by) == 0 {
		return ""
	}
	parts := make([]string, 0, len(by))
	for _, m := range by {
		part := OneLine(m.Name) + ", " + OneLine(m.Operation)
		if !m.Time.IsZero() {
			part += ", " + m.Time.UTC().Format(timeFormat)
		}
		parts = append(parts, part)
	}
	return " (" + verb + " " + strings.Join(parts, "; ") + ")"
}

// bodyLines are an object that would be made, as YAML. Environment variables
// are shown by name: a whole object is looked at for its shape, and often
// pasted elsewhere.
func bodyLines(intent runtime.ApplyConfiguration) []line {
	cannot := []line{{"", "(the object cannot be shown)"}}
	raw, err := json.Marshal(intent)
	if err != nil {
		return cannot
	}
	shown, _ := rewrite(string(raw), "", func(string, any) bool { return true })
	text, err := yaml.JSONToYAML([]byte(shown))
	if err != nil {
		return cannot
	}
	var lines []line
	for l := range strings.Lines(string(text)) {
		lines = append(lines, line{"+", cutLine(strings.TrimSuffix(l, "\n"), valueLimit)})
	}
	return lines
}

// state is the state of a cache in words; in a preview that which follows.
func (v view) state(verdict model.Verdict) string {
	state := string(verdict.State)
	if v.preview && verdict.State != model.NotDone {
		state = "then " + state
	}
	if verdict.Reason != "" {
		state += " (" + shortLine(verdict.Reason, valueLimit) + ")"
	}
	return state
}

// verdictMessage is the sentence that goes with a cache's state, unless a hold
// or an error below says the same.
func verdictMessage(r model.CacheReport) string {
	message := r.Verdict.Message
	for _, h := range r.Plan.Holds {
		if h.Message != "" && strings.Contains(message, h.Message) {
			return ""
		}
	}
	for _, o := range r.Outcomes {
		if o.Err != nil && strings.Contains(message, o.Err.Error()) {
			return ""
		}
	}
	return message
}

// holdText says what is withheld.
func holdText(h model.Hold) string {
	message := h.Message
	if target := h.Target.String(); !strings.Contains(message, target) {
		message = target + ": " + message
	}
	return OneLine(h.Reason) + " (" + OneLine(string(h.Class)) + "): " + shortLine(message, sentenceLimit)
}

// effectsOf says what the steps mean; only before they are taken.
func (v view) effectsOf(r model.CacheReport) []string {
	if !v.preview {
		return nil
	}
	var sentences []string
	for _, e := range effects(r) {
		sentences = append(sentences, shortLine(e, sentenceLimit))
	}
	return sentences
}
