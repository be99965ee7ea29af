// Package golden compares the output of a test with a file that a person has read
// and approved.
package golden

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
)

// updateVariable is an environment variable. If it is 1, Equal rewrites the files
// instead of comparing.
const updateVariable = "UPDATE_GOLDEN"

// Equal fails t and shows the difference, unless the file at path holds exactly
// got. A missing file counts as empty.
func Equal(t testing.TB, path string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("golden file: %v", err)
	}
	if err == nil && bytes.Equal(want, got) {
		return
	}
	if os.Getenv(updateVariable) == "1" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatalf("golden file: %v", err)
		}
		return
	}
	t.Errorf("%s differs (- file, + now). If the new text is right: make golden\n%s",
		path, unified(string(want), string(got)))
}
