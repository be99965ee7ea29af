package golden

import (
	"fmt"
	"strings"
)

// contextLines is how many equal lines are shown before and after a difference.
const contextLines = 3

// line is one line of a comparison. Its sign is '-' if only the old text has it,
// '+' if only the new text has it, and ' ' if both do.
type line struct {
	sign byte
	text string
}

// unified returns the difference of two texts, line by line. It omits the equal
// lines that are far from any difference.
func unified(before, after string) string {
	lines := compare(split(before), split(after))
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.sign == ' ' {
			continue
		}
		for j := max(0, i-contextLines); j <= min(len(lines)-1, i+contextLines); j++ {
			near[j] = true
		}
	}
	var out strings.Builder
	beforeLine := 1
	for i, l := range lines {
		if near[i] {
			if i == 0 || !near[i-1] {
				fmt.Fprintf(&out, "@@ line %d @@\n", beforeLine)
			}
			fmt.Fprintf(&out, "%c %s\n", l.sign, l.text)
		}
		if l.sign != '+' {
			beforeLine++
		}
	}
	return out.String()
}

// split cuts a text into lines. It marks a last line without a line feed, so that
// it differs from the same line with one.
func split(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	last := len(lines) - 1
	if lines[last] == "" {
		return lines[:last]
	}
	lines[last] += `  \ no line feed at the end`
	return lines
}

// compare finds a longest common subsequence of the lines with the classic table of
// lengths. That is fast enough, because golden files are short.
func compare(before, after []string) []line {
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []line
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			lines = append(lines, line{' ', before[i]})
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, line{'-', before[i]})
			i++
		default:
			lines = append(lines, line{'+', after[j]})
			j++
		}
	}
	return lines
}
