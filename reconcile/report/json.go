package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

// Schema names the form of the JSON. Another form would get another name.
const Schema = "clusteredcache.report/v1"

const timeFormat = time.RFC3339

// JSONOptions are the options of JSON.
type JSONOptions struct {
	// Preview means that the fleet comes from a dry run.
	Preview bool
}

// The types below are the schema of the package documentation. They are separate
// from the types of package model, so that those can change.
type (
	document struct {
		Schema      string         `json:"schema"`
		DryRun      bool           `json:"dryRun"`
		TimedOut    bool           `json:"timedOut"`
		Interrupted bool           `json:"interrupted"`
		Incomplete  string         `json:"incomplete,omitempty"`
		Unlisted    []jsonUnlisted `json:"unlisted,omitempty"`
		Summary     jsonSummary    `json:"summary"`
		Caches      []jsonCache    `json:"caches"`
		Requests    map[string]int `json:"requests"`
	}
	jsonUnlisted struct {
		Namespace string `json:"namespace"`
		Message   string `json:"message"`
	}
	jsonSummary struct {
		Created   int        `json:"created"`
		Changed   int        `json:"changed"`
		Deleted   int        `json:"deleted"`
		Finalized int        `json:"finalized"`
		Restarts  int        `json:"restarts"`
		Held      int        `json:"held"`
		Failed    int        `json:"failed"`
		Estimated int        `json:"estimated"`
		Edited    int        `json:"edited"`
		Caches    jsonStates `json:"caches"`
	}
	jsonStates struct {
		Total       int `json:"total"`
		Settled     int `json:"settled"`
		Progressing int `json:"progressing"`
		Stalled     int `json:"stalled"`
		Failed      int `json:"failed"`
	}
	jsonCache struct {
		Namespace     string        `json:"namespace"`
		Name          string        `json:"name"`
		State         string        `json:"state"`
		Reason        string        `json:"reason,omitempty"`
		Message       string        `json:"message,omitempty"`
		Standing      *jsonStanding `json:"standing,omitempty"`
		Edit          *jsonEdit     `json:"edit,omitempty"`
		Steps         []jsonStep    `json:"steps"`
		Effects       []string      `json:"effects,omitempty"`
		Holds         []jsonHold    `json:"holds"`
		StatusWritten bool          `json:"statusWritten"`
	}
	jsonStanding struct {
		Ready int32      `json:"ready"`
		Size  int32      `json:"size"`
		Runs  string     `json:"runs,omitempty"`
		Wants string     `json:"wants"`
		Nodes []jsonNode `json:"nodes,omitempty"`
	}
	jsonNode struct {
		Name    string `json:"name"`
		State   string `json:"state"`
		Message string `json:"message,omitempty"`
		Version string `json:"version,omitempty"`
		Volume  string `json:"volume,omitempty"`
		Newest  bool   `json:"newest"`
	}
	jsonEdit struct {
		New      bool         `json:"new"`
		Estimate string       `json:"estimate,omitempty"`
		Changes  []jsonChange `json:"changes,omitempty"`
	}
	jsonStep struct {
		Action    string       `json:"action"`
		Kind      string       `json:"kind"`
		Namespace string       `json:"namespace"`
		Name      string       `json:"name"`
		Result    string       `json:"result,omitempty"`
		Reason    string       `json:"reason,omitempty"`
		Restarts  int32        `json:"restarts,omitempty"`
		Changes   []jsonChange `json:"changes,omitempty"`
		Error     string       `json:"error,omitempty"`
		Warning   string       `json:"warning,omitempty"`
		Estimate  string       `json:"estimate,omitempty"`
	}
	jsonChange struct {
		Path string        `json:"path"`
		From string        `json:"from,omitempty"`
		To   string        `json:"to,omitempty"`
		By   []jsonManager `json:"by,omitempty"`
	}
	jsonManager struct {
		Name      string `json:"name"`
		Operation string `json:"operation"`
		Time      string `json:"time,omitempty"`
	}
	jsonHold struct {
		Gate      string `json:"gate"`
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Class     string `json:"class"`
		Reason    string `json:"reason"`
		Message   string `json:"message"`
	}
)

// JSON writes f for programs, in the schema of the package documentation. It
// returns an error of w.
func JSON(w io.Writer, f model.Fleet, o JSONOptions) error {
	d := document{
		Schema:      Schema,
		DryRun:      o.Preview,
		TimedOut:    f.TimedOut,
		Interrupted: f.Interrupted,
		Incomplete:  f.Incomplete,
		Unlisted:    unlistedJSON(f),
		Summary:     summaryJSON(Summarize(f), o.Preview),
		Caches:      []jsonCache{},
		Requests:    f.Requests,
	}
	if d.Requests == nil {
		d.Requests = map[string]int{}
	}
	for _, r := range sorted(f.Caches) {
		d.Caches = append(d.Caches, cacheJSON(r))
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	_, err := w.Write(harmlessJSON(b.Bytes()))
	return err
}

// harmlessJSON escapes the characters that encoding/json leaves as they are but a
// terminal would obey. These are C1 controls and characters that change the writing
// direction.
func harmlessJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r < utf8.RuneSelf && r != 0x7f || strconv.IsPrint(r) {
			out = append(out, b[:size]...)
		} else {
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
		b = b[size:]
	}
	return out
}

func summaryJSON(s Summary, preview bool) jsonSummary {
	t := s.Taken
	if preview {
		t = s.planned()
	}
	c := s.Caches
	return jsonSummary{
		Created: t.Created, Changed: t.Changed, Deleted: t.Deleted, Finalized: t.Finalized, Restarts: t.Restarts,
		Held: s.Held, Failed: s.Failed, Estimated: s.Estimated, Edited: s.Edited,
		Caches: jsonStates(c),
	}
}

func cacheJSON(r model.CacheReport) jsonCache {
	c := jsonCache{
		Namespace: r.Namespace, Name: r.Name,
		State: string(r.Verdict.State), Reason: r.Verdict.Reason, Message: r.Verdict.Message,
		Steps: []jsonStep{}, Holds: []jsonHold{},
		Effects:       effects(r),
		StatusWritten: r.StatusWritten,
	}
	if r.Edit != nil {
		c.Edit = &jsonEdit{New: r.Edit.New, Estimate: r.Edit.Estimate, Changes: changesJSON(&mask{}, r.Edit.Changes)}
	}
	if s := r.Standing; s != nil {
		c.Standing = &jsonStanding{Ready: s.Ready, Size: s.Size, Runs: s.Runs, Wants: s.Wants}
		for _, n := range s.Nodes {
			c.Standing.Nodes = append(c.Standing.Nodes, jsonNode(n))
		}
	}
	for _, o := range outcomes(r) {
		c.Steps = append(c.Steps, stepJSON(o))
	}
	for _, h := range r.Plan.Holds {
		c.Holds = append(c.Holds, jsonHold{
			Gate: string(h.Gate), Kind: string(h.Target.Kind), Namespace: h.Target.Namespace, Name: h.Target.Name,
			Class: string(h.Class), Reason: h.Reason, Message: h.Message,
		})
	}
	return c
}

func unlistedJSON(f model.Fleet) []jsonUnlisted {
	var list []jsonUnlisted
	for _, ns := range slices.Sorted(maps.Keys(f.Unlisted)) {
		list = append(list, jsonUnlisted{ns, f.Unlisted[ns].Error()})
	}
	return list
}

func stepJSON(o model.Outcome) jsonStep {
	s := o.Step
	j := jsonStep{
		Action: string(s.Action),
		Kind:   string(s.Target.Kind), Namespace: s.Target.Namespace, Name: s.Target.Name,
		Result: string(o.Result), Reason: s.Reason,
		Changes: changesJSON(&mask{live: s.Live}, s.Changes),
		Warning: o.Warning, Estimate: o.Estimate,
	}
	if writes(o) {
		j.Restarts = s.Restarts
	}
	if o.Err != nil {
		j.Error = o.Err.Error()
	}
	return j
}

func changesJSON(m *mask, changes []fields.Change) []jsonChange {
	var list []jsonChange
	for _, c := range changes {
		c, _ = m.change(c)
		change := jsonChange{Path: c.Path, From: c.From, To: c.To}
		for _, m := range c.By {
			manager := jsonManager{Name: m.Name, Operation: m.Operation}
			if !m.Time.IsZero() {
				manager.Time = m.Time.UTC().Format(timeFormat)
			}
			change.By = append(change.By, manager)
		}
		list = append(list, change)
	}
	return list
}
