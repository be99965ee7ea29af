// Package links finds the links in Markdown files that lead nowhere: to a file, or
// to a heading of a file, that does not exist. It does not follow links to other
// sites.
package links

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Broken returns a sentence for each broken link in the Markdown files of a tree.
// It does not look into hidden folders, or into those that make writes.
func Broken(tree fs.FS) ([]string, error) {
	pages := map[string]page{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(name, ".") && name != "." || name == "bin" || name == "dist"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		pages[name] = parse(string(text))
		return err
	})
	if err != nil {
		return nil, err
	}
	var broken []string
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, l := range pages[name].links {
			why := "no line defines this label"
			if !l.undefined {
				why = follow(tree, pages, name, l.target)
			}
			if why != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: %s: %s", name, l.line, l.target, why))
			}
		}
	}
	return broken, nil
}

// follow says why a link from a page leads nowhere, or "".
func follow(tree fs.FS, pages map[string]page, from, target string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "" || u.Host != "":
		return ""
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	if strings.HasPrefix(u.Path, "/") {
		to = path.Clean(u.Path[1:]) // of the repository
	}
	entry, err := fs.Stat(tree, to)
	switch {
	case err != nil:
		return "there is no such file"
	case u.Fragment == "":
		return ""
	case entry.IsDir():
		to = path.Join(to, "README.md") // which is shown with the folder
	}
	if p, ok := pages[to]; !ok || !p.anchors[u.Fragment] {
		return fmt.Sprintf("%s has no heading #%s", to, u.Fragment)
	}
	return ""
}

// page is what there is to follow in a Markdown file.
type page struct {
	links   []link
	anchors map[string]bool
}

type link struct {
	target string
	line   int
	// undefined: target is a label that the page does not define.
	undefined bool
}

var (
	// inline is [text](target "title"), an image too.
	inline = regexp.MustCompile(`\]\(\s*(?:<([^>]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)`)
	// definition is [label]: target, and reference is [text][label].
	definition = regexp.MustCompile(`(?m)^ {0,3}\[([^\]]+)\]:\s*<?([^\s>]+)`)
	reference  = regexp.MustCompile(`\]\[([^\]]+)\]`)
	attribute  = regexp.MustCompile(`\b(?:href|src)="([^"]*)"`)
	identity   = regexp.MustCompile(`\b(?:id|name)="([^"]*)"`)
	heading    = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$`)
	underline  = regexp.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`)
)

func parse(markdown string) page {
	lines := withoutBlocks(strings.Split(markdown, "\n"))
	p := page{anchors: anchors(lines)}
	text := withoutSpans(strings.Join(lines, "\n"))
	add := func(at int, target string) {
		p.links = append(p.links, link{target: target, line: 1 + strings.Count(text[:at], "\n")})
	}
	for _, m := range inline.FindAllStringSubmatchIndex(text, -1) {
		if m[2] >= 0 {
			add(m[0], text[m[2]:m[3]])
		} else {
			add(m[0], text[m[4]:m[5]])
		}
	}
	defined := map[string]bool{}
	for _, m := range definition.FindAllStringSubmatchIndex(text, -1) {
		defined[strings.ToLower(text[m[2]:m[3]])] = true
		add(m[0], text[m[4]:m[5]])
	}
	for _, m := range reference.FindAllStringSubmatchIndex(text, -1) {
		if label := text[m[2]:m[3]]; !defined[strings.ToLower(label)] {
			add(m[0], label)
			p.links[len(p.links)-1].undefined = true
		}
	}
	for _, m := range attribute.FindAllStringSubmatchIndex(text, -1) {
		add(m[0], text[m[2]:m[3]])
	}
	for _, m := range identity.FindAllStringSubmatch(text, -1) {
		p.anchors[m[1]] = true
	}
	return p
}

// anchors are the names that GitHub gives to headings.
func anchors(lines []string) map[string]bool {
	names, taken := map[string]bool{}, map[string]int{}
	for i, line := range lines {
		title := ""
		if m := heading.FindStringSubmatch(line); m != nil {
			title = m[1]
		} else if i > 0 && underline.MatchString(line) && strings.TrimSpace(lines[i-1]) != "" {
			title = strings.TrimSpace(lines[i-1])
		} else {
			continue
		}
		name := anchor(title)
		if n := taken[name]; n > 0 {
			names[fmt.Sprintf("%s-%d", name, n)] = true
		}
		names[name] = true
		taken[name]++
	}
	return names
}

var (
	linked = regexp.MustCompile(`!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	// removed is what an anchor does not keep of a title.
	removed = regexp.MustCompile(`[^\p{L}\p{M}\p{N}\p{Pc} -]`)
)

// anchor is the name of a heading: its text in lower case, without punctuation, and
// with hyphens for spaces.
func anchor(title string) string {
	title = strings.ToLower(linked.ReplaceAllString(title, "$1"))
	return strings.ReplaceAll(removed.ReplaceAllString(title, ""), " ", "-")
}
