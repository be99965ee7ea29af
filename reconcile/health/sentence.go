package health

import (
	"regexp"
	"strings"
)

// maxSentence limits the text of others in bytes, so that a message has room for
// several.
const maxSentence = 300

// changing matches what differs each time that somebody repeats a message: times,
// uuids, addresses of requests and containers.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?|[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|0x[0-9a-fA-F]+|([a-z0-9]+:)?\b[0-9a-f]{32,}\b`)

// Plain returns the text of others in a form for our messages: one short line,
// which stays the same while the text means the same.
func Plain(s string) string {
	return Cut(strings.TrimSuffix(Steady(s), "."), maxSentence)
}

// Cut shortens a text to at most this many bytes. It does not cut through a rune.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}

// Steady replaces what differs each time that somebody repeats a message.
func Steady(s string) string {
	s = changing.ReplaceAllStringFunc(s, func(found string) string {
		if strings.HasPrefix(found, "sha256:") {
			return found // part of an image's name
		}
		return "..."
	})
	return strings.Join(strings.Fields(s), " ")
}
