package health

import (
	"regexp"
	"strings"
)

// maxSentence bounds what others say, in bytes: a message has room for several.
const maxSentence = 300

// changing matches what differs each time that somebody says the same: times,
// uuids, addresses of requests and containers.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?|[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|0x[0-9a-fA-F]+|([a-z0-9]+:)?\b[0-9a-f]{32,}\b`)

// Plain is what somebody else said as it may stand in a message: one line, not
// long, and the same as long as the same is said.
func Plain(s string) string {
	return Cut(strings.TrimSuffix(Steady(s), "."), maxSentence)
}

// Cut bounds a text in bytes, at a rune's boundary.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}

// Steady takes out of a text what differs each time that the same is said.
func Steady(s string) string {
	s = changing.ReplaceAllStringFunc(s, func(found string) string {
		if strings.HasPrefix(found, "sha256:") {
			return found // part of an image's name
		}
		return "..."
	})
	return strings.Join(strings.Fields(s), " ")
}
