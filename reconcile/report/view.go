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

// sentenceLimit and valueLimit are the greatest number of characters that one
// sentence and one value take in a line. A sentence may come from the cluster,
// where a webhook can answer with a whole page.
const (
	sentenceLimit = 600
	valueLimit    = 200
)

// view turns a report into lines. Text and Markdown then add their own form.
// Nothing in a line can end it or move the cursor.
type view struct {
	// preview means that the report comes from a dry run and describes what would
	// happen.
	preview bool
	// bodies means that a preview shows created objects in full.
	bodies bool
}

// item is one object in the text: a cache that a manifest edits, or the target of a
// step.
type item struct {
	mark  string // + ~ - =
	name  string // the object
	text  string // the whole line, beginning with name
	lines []line
	notes []note
}

// line is a field of an item.
type line struct {
	mark string // + - = for a field, empty for any other line
	text string
}

// note is a sentence about an item.
type note struct {
	kind string // note, error, warning
	text string
}

// items returns the edit of the cache, if any, and then its steps.
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

// edit returns what a manifest changes. Our manager owns no field of a spec, so the
// mask treats nothing as ours.
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

// marks maps each action to its mark in the text.
var marks = map[model.Action]string{
	model.ActionCreate: "+", model.ActionChange: "~", model.ActionReplace: "~", model.ActionOwn: "~",
	model.ActionDelete: "-", model.ActionFinalize: "-",
}

// outcome returns the item of a step.
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
		// The server answered that nothing changes.
	case v.preview && v.bodies && s.Action == model.ActionCreate && s.Intent != nil:
		i.lines = bodyLines(s.Intent)
	default:
		m := &mask{live: s.Live}
		for _, c := range s.Changes {
			i.lines = append(i.lines, changeLines(m, c, "taken by")...)
		}
	}
	if s.Downgrade != "" && writes(o) && !v.preview { // a preview has it among the effects
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

// estimated returns the words in parentheses about an estimated step.
func estimated(reason string) string {
	return " (estimated: " + shortLine(reason, sentenceLimit) + ")"
}

// word returns the result of a step. In a preview the mark is enough, unless the
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

// changeLines returns one line for the live value and one for the wanted value. The
// managers follow the value that they set.
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

// managers returns the words in parentheses that name the managers of a field.
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

// bodyLines returns an object that would be created, as YAML. It hides the values
// of environment variables. A reader looks at a whole object for its shape, and
// often pastes it elsewhere.
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

// state returns the state of a cache in words. In a preview it is the state that
// would follow.
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

// verdictMessage returns the sentence about the state of a cache. It returns "" if
// a hold or an error below already contains that sentence.
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

// holdText returns the sentence about what is withheld.
func holdText(h model.Hold) string {
	message := h.Message
	if target := h.Target.String(); !strings.Contains(message, target) {
		message = target + ": " + message
	}
	return OneLine(h.Reason) + " (" + OneLine(string(h.Class)) + "): " + shortLine(message, sentenceLimit)
}

// effectsOf returns the effects of the steps. It returns none once the steps were
// taken.
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
