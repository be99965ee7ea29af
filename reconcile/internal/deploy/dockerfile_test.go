package deploy

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/internal/testenv"
)

// What the Dockerfile copies is enough for what it runs, with .dockerignore's
// exceptions left out. There is no container engine here: the base image, the
// layers and the certificates are not tried.
func TestDockerfileBuilds(t *testing.T) {
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	stage, _, found := strings.Cut(text, "\nFROM scratch\n")
	if !found {
		t.Fatal("the Dockerfile has another form")
	}
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "clusteredcache")
	var runs []string
	for line := range strings.SplitSeq(stage, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "COPY":
			for _, source := range words[1 : len(words)-1] {
				copyContext(t, source, dir)
			}
		case words[0] == "RUN" && strings.Contains(line, "go build"):
			runs = append(runs, strings.Replace(strings.TrimPrefix(line, "RUN "), "-o /clusteredcache", "-o "+program, 1))
		}
	}
	if len(runs) != 1 {
		t.Fatalf("%d builds", len(runs))
	}
	cmd := exec.Command("sh", "-ec", runs[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "VERSION=v9.9.9", "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH, "GOFLAGS=-mod=readonly")
	if r := finish(t, cmd); r.status != 0 {
		t.Fatalf("%s: %s", runs[0], r.stderr)
	}
	if r := run(t, program, "version"); !strings.Contains(r.stdout, "v9.9.9") {
		t.Errorf("version: %s%s", r.stdout, r.stderr)
	}
}

// copyContext copies a file or directory of the build context.
func copyContext(t *testing.T, source, dir string) {
	t.Helper()
	root := testenv.Root()
	err := filepath.WalkDir(filepath.Join(root, source), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if name, _ := filepath.Rel(root, path); !strings.HasSuffix(name, "_test.go") {
			write(t, filepath.Join(dir, name), read(t, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
