package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/model"
)

func markdownOf(t *testing.T, f model.Fleet) string {
	t.Helper()
	var b bytes.Buffer
	if err := Markdown(&b, f, MarkdownOptions{Preview: true}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func many(n int, value string) model.Fleet {
	f := fleet(n)
	for i := range n {
		r := bumped()
		r.Name = fmt.Sprintf("cache-%05d", i)
		r.Outcomes[0].Step.Changes[0].To = value
		f.Caches = append(f.Caches, r)
	}
	return f
}

// What does not fit a comment is left out by whole caches, and counted.
func TestMarkdownIsCut(t *testing.T) {
	for _, tc := range []struct {
		n           int
		value       string
		wantRows    bool // all rows fit
		wantDetails bool // all details fit
	}{
		{10, `"x"`, true, true},
		{300, `"x"`, true, false},
		{3000, `"x"`, false, false},
		{300, strings.Repeat("`", 5000), true, false},
		{300, strings.Repeat("<é>", 5000), true, false},
	} {
		t.Run(fmt.Sprintf("%d caches, values of %d bytes", tc.n, len(tc.value)), func(t *testing.T) {
			text := markdownOf(t, many(tc.n, tc.value))
			if len(text) > markdownLimit {
				t.Errorf("%d bytes", len(text))
			}
			rows, parts := strings.Count(text, "\n| shop/"), strings.Count(text, "<details>")
			if parts != strings.Count(text, "\n</details>\n") {
				t.Error("a part is not closed")
			}
			if got := rows + leftOut(t, text, "The table leaves out"); got != tc.n || tc.wantRows != (rows == tc.n) {
				t.Errorf("%d rows, %d rows and left out, of %d", rows, got, tc.n)
			}
			if got := parts + leftOut(t, text, "The details leave out"); got != tc.n || tc.wantDetails != (parts == tc.n) {
				t.Errorf("%d parts, %d parts and left out, of %d", parts, got, tc.n)
			}
		})
	}
}

// A single cache that is larger than a comment is left out too.
func TestMarkdownOfOneHugeCache(t *testing.T) {
	r := bumped()
	for i := range 2000 {
		r.Outcomes[0].Step.Changes = append(r.Outcomes[0].Step.Changes, fields.Change{Path: fmt.Sprintf("spec.x%d", i), To: strings.Repeat("y", 100)})
	}
	text := markdownOf(t, fleet(1, r))
	if len(text) > markdownLimit || !strings.Contains(text, "The details leave out 1 more cache:") || !strings.Contains(text, "| shop/cache (edited) |") {
		t.Errorf("%d bytes: %.2000s", len(text), text)
	}
}

func leftOut(t *testing.T, text, sentence string) int {
	t.Helper()
	m := regexp.MustCompile(sentence + ` (\d+) more caches?:`).FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Outside of the block nothing that is not ours is markup, and the block ends
// where it should.
func TestMarkdownIsNotInjected(t *testing.T) {
	text := markdownOf(t, fleet(1, injected()))
	before, block, found := strings.Cut(text, "`````diff\n")
	block, after, ended := strings.Cut(block, "\n`````\n")
	if !found || !ended || strings.Contains(block, "\n`") {
		t.Fatalf("the block is not the one meant:\n%s", text)
	}
	around := before + after
	for _, tag := range []string{"<!-- clusteredcache diff -->", "<details>", "</details>", "<summary>", "</summary>", "**"} {
		around = strings.ReplaceAll(around, tag, "")
	}
	for _, markup := range []string{"<", ">", "`", "*", "_", "[", "](", "@octocat", " #1", "://", "\x1b"} {
		if strings.Contains(around, markup) {
			t.Errorf("%q is left:\n%s", markup, around)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\|.*$`).FindAllString(text, -1) {
		if strings.Count(row, "|") != 8 {
			t.Errorf("a row of other than seven cells: %s", row)
		}
	}
	if !strings.HasPrefix(text, "<!-- clusteredcache diff -->\n") {
		t.Errorf("the first line is no marker: %.100s", text)
	}
}
