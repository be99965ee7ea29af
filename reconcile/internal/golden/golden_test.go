package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a testing.TB that remembers instead of failing.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.message = fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func TestEqualShowsTheDifference(t *testing.T) {
	t.Setenv(updateVariable, "")
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("1\n2\n3\n4\n5\n6\nold\n8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	Equal(r, path, []byte("1\n2\n3\n4\n5\n6\nnew\n8\n"))
	want := "@@ line 4 @@\n  4\n  5\n  6\n- old\n+ new\n  8\n"
	if !strings.HasSuffix(r.message, want) || !strings.Contains(r.message, "make golden") {
		t.Errorf("got:\n%s\nwant at its end:\n%s", r.message, want)
	}
}

func TestEqualAcceptsTheSame(t *testing.T) {
	t.Setenv(updateVariable, "")
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("same\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	Equal(r, path, []byte("same\n"))
	if r.message != "" {
		t.Error(r.message)
	}
}

func TestEqualTellsAMissingFileFromAnEmptyOne(t *testing.T) {
	t.Setenv(updateVariable, "")
	r := &recorder{TB: t}
	Equal(r, filepath.Join(t.TempDir(), "none"), nil)
	if r.message == "" {
		t.Error("a missing file passed as equal to nothing")
	}
}

func TestEqualUpdates(t *testing.T) {
	t.Setenv(updateVariable, "1")
	path := filepath.Join(t.TempDir(), "file")
	Equal(t, path, []byte("new\n"))
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "new\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestUnified(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"equal":             {"a\n", "a\n", ""},
		"from nothing":      {"", "a\n", "@@ line 1 @@\n+ a\n"},
		"to nothing":        {"a\n", "", "@@ line 1 @@\n- a\n"},
		"line feed is lost": {"a\n", "a", "@@ line 1 @@\n- a\n+ a  \\ no line feed at the end\n"},
		"two places": {
			"x\n1\n2\n3\n4\n5\n6\n7\n8\ny\n", "X\n1\n2\n3\n4\n5\n6\n7\n8\nY\n",
			"@@ line 1 @@\n- x\n+ X\n  1\n  2\n  3\n@@ line 7 @@\n  6\n  7\n  8\n- y\n+ Y\n",
		},
	} {
		if got := unified(c.before, c.after); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
}
