package report

import (
	"errors"
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/model"
)

// Namespaces that may not be listed are told in every form that people read, in
// order, and the last line counts them.
func TestUnlisted(t *testing.T) {
	f := model.Fleet{Total: 1, Unlisted: map[string]error{"shop": errors.New("no Role"), "catalog": errors.New("no Role either")}}
	var text, markdown, machine strings.Builder
	for _, err := range []error{
		Text(&text, f, TextOptions{}), Markdown(&markdown, f, MarkdownOptions{Preview: true}), JSON(&machine, f, JSONOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = `Not listed: namespace catalog: no Role either
Not listed: namespace shop: no Role
Done: 0 created, 0 changed, 0 deleted; 0 held, 0 failed; 1 cache: 1 settled, 0 progressing, 0 stalled, 0 failed; 2 namespaces not listed
`
	if text.String() != want {
		t.Errorf("text\n%s\nwant\n%s", &text, want)
	}
	for part, in := range map[string]string{
		"**Plan: 0 create, 0 change, 0 delete; 0 held; 2 namespaces not listed**": markdown.String(),
		"Not listed: namespace shop: no Role":                                     markdown.String(),
		`"namespace": "shop",`:                                                    machine.String(),
	} {
		if !strings.Contains(in, part) {
			t.Errorf("no %q in\n%s", part, in)
		}
	}
	if strings.Contains(markdown.String(), "No changes.") {
		t.Error("half a diff calls itself whole")
	}
}
