package links

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Every link in the documents of this repository leads somewhere.
func TestDocuments(t *testing.T) {
	broken, err := Broken(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range broken {
		t.Error(sentence)
	}
}

const document = `# A title: with ` + "`code -f`" + `, a [link](dir/README.md) & signs_1
Setext
------
## Twice
## Twice
[here](#twice) [second](#twice-1) [signs](#a-title-with-code--f-a-link--signs_1) [setext](#setext)
[folder](dir) [its README](dir#inside) [file](dir/file.yaml) [root](/dir/file.yaml) [named](#by-hand)
![image](<dir/with space.png>) [escaped](dir/with%20space.png "title") [brackets](dir/a(1).md)
[label][Known] [elsewhere](https://example.com/nowhere#at-all) [mail](mailto:a@example.com)
<a id="by-hand" href="dir/README.md">raw</a>

[known]: dir/README.md#inside

` + "`[span](no.md)` and ``two ` [ticks](no.md)`` and `a span\nof [two](no.md) lines`" + `

    [indented](no.md)

    # no heading

` + "```sh" + `
[fenced](no.md)
# also no heading
~~~
` + "```" + `

- an item

      [code of an item](no.md)

  <!-- [comment](no.md)
  [goes on](no.md) --> and ends

~~~
[tildes](no.md)
` + "```" + `
~~~
`

func tree(document string) fstest.MapFS {
	return fstest.MapFS{
		"README.md":          {Data: []byte(document)},
		"dir/README.md":      {Data: []byte("[up](../README.md#twice)\n## Inside\n")},
		"dir/file.yaml":      {},
		"dir/with space.png": {},
		"dir/a(1).md":        {},
		"bin/README.md":      {Data: []byte("[made](nothing.md)\n")},
		".git/README.md":     {Data: []byte("[hidden](nothing.md)\n")},
	}
}

func TestGoodLinks(t *testing.T) {
	broken, err := Broken(tree(document))
	if err != nil || len(broken) != 0 {
		t.Errorf("%v\n%s", err, strings.Join(broken, "\n"))
	}
	if found := len(parse(document).links); found != 17 {
		t.Errorf("%d links are followed", found)
	}
}

func TestBrokenLinks(t *testing.T) {
	for added, want := range map[string]string{
		"[file](dir/none.md)":               "dir/none.md: there is no such file",
		"text\n\n- an item\n\n    [in](no)": "no: there is no such file",
		"[case](dir/Readme.md)":             "dir/Readme.md: there is no such file",
		"[outside](../README.md)":           "../README.md: there is no such file",
		"[anchor](#thrice)":                 "#thrice: README.md has no heading #thrice",
		"[third](#twice-2)":                 "#twice-2: README.md has no heading #twice-2",
		"[other](dir/README.md#twice)":      "dir/README.md#twice: dir/README.md has no heading #twice",
		"[folder](dir#twice)":               "dir#twice: dir/README.md has no heading #twice",
		"[code](#no-heading)":               "#no-heading: README.md has no heading #no-heading",
		"[fence](#also-no-heading)":         "#also-no-heading: README.md has no heading #also-no-heading",
		"[yaml](dir/file.yaml#twice)":       "dir/file.yaml#twice: dir/file.yaml has no heading #twice",
		"![image](none.png)":                "none.png: there is no such file",
		"| a | [cell](none.md) |":           "none.md: there is no such file",
		"[label]: none.md":                  "none.md: there is no such file",
		"[text][unknown]":                   "unknown: no line defines this label",
		`<a href="none.md">raw</a>`:         "none.md: there is no such file",
		"a ` tick and [link](none.md)":      "none.md: there is no such file",
		"`code` [link](none.md) `code`":     "none.md: there is no such file",
	} {
		broken, err := Broken(tree(document + "\n" + added + "\n"))
		if err != nil || len(broken) != 1 || !strings.Contains(broken[0], want) {
			t.Errorf("%s: %v, %s", added, err, broken)
		}
	}
	broken, err := Broken(tree("\n\n[a](none.md)"))
	if err != nil || !slices.Equal(broken, []string{
		"README.md:3: none.md: there is no such file",
		"dir/README.md:1: ../README.md#twice: README.md has no heading #twice",
	}) {
		t.Errorf("%v, %q", err, broken)
	}
}
