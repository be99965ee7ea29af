package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// OneLine returns s so that it may be printed inside a line of text. It escapes
// (\n, \x1b, \u202e) what would move the cursor, end the line, or change the colour
// or the writing direction.
func OneLine(s string) string {
	harmless := func(r rune) bool { return r != utf8.RuneError && strconv.IsPrint(r) }
	if strings.IndexFunc(s, func(r rune) bool { return !harmless(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == utf8.RuneError || strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// shortLine returns OneLine(s) without surrounding spaces, with at most about limit
// characters.
func shortLine(s string, limit int) string { return cutLine(strings.TrimSpace(s), limit) }

// cutLine returns OneLine(s) with at most about limit characters. It keeps the
// indentation.
func cutLine(s string, limit int) string {
	cut := 0
	for i := range s {
		if cut == limit {
			return OneLine(s[:i]) + fmt.Sprintf("... (%d more bytes)", len(s)-i)
		}
		cut++
	}
	return OneLine(s)
}
