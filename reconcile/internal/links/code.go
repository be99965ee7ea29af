package links

import (
	"regexp"
	"strings"
)

var (
	fence = regexp.MustCompile("^ *(```+|~~~+)")
	item  = regexp.MustCompile(`^( *)([-*+]|\d{1,9}[.)])( +)`)
	span  = regexp.MustCompile("`+")
)

// withoutBlocks empties the lines of comments and of code, so that the others keep
// their numbers.
func withoutBlocks(lines []string) []string {
	kept := make([]string, len(lines))
	var (
		closing string // what ends the block of code that we are in
		comment bool   // we are in <!-- -->
		code    bool   // the last line was indented code
		blank   = true // the last line was empty
		content int    // where the text of the current list item begins
	)
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if strings.HasPrefix(line, "\t") {
			indent = 4
		}
		switch trimmed := strings.TrimSpace(line); {
		case closing != "":
			if strings.HasPrefix(trimmed, closing) && strings.Trim(trimmed, closing[:1]) == "" {
				closing = ""
			}
		case comment:
			_, after, ended := strings.Cut(line, "-->")
			if comment = !ended; ended {
				kept[i], comment = withoutComments(after)
			}
		case trimmed == "":
			blank = true
			continue
		case indent >= content+4 && (blank || code):
			code = true
			continue
		case fence.MatchString(line):
			closing = strings.TrimSpace(fence.FindString(line))
		default:
			if m := item.FindStringSubmatch(line); m != nil {
				content = len(m[0])
			} else if blank && indent < content {
				content = 0
			}
			kept[i], comment = withoutComments(line)
		}
		blank, code = false, false
	}
	return kept
}

// withoutComments removes the comments of a line. It reports whether one goes on in
// the next line.
func withoutComments(line string) (string, bool) {
	for {
		before, rest, begun := strings.Cut(line, "<!--")
		if !begun {
			return line, false
		}
		_, after, ended := strings.Cut(rest, "-->")
		if !ended {
			return before, true
		}
		line = before + after
	}
}

// withoutSpans blanks out the code between backticks. It ends with as many as it
// began with, in the same paragraph.
func withoutSpans(text string) string {
	out := []byte(text)
	for at := 0; ; {
		begin := span.FindStringIndex(text[at:])
		if begin == nil {
			return string(out)
		}
		start, inner := at+begin[0], at+begin[1]
		at = inner
		paragraph, _, _ := strings.Cut(text[inner:], "\n\n")
		for _, end := range span.FindAllStringIndex(paragraph, -1) {
			if end[1]-end[0] == inner-start {
				at = inner + end[1]
				for i := start; i < at; i++ {
					if out[i] != '\n' {
						out[i] = ' '
					}
				}
				break
			}
		}
	}
}
