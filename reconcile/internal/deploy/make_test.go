package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/clusteredcache/reconcile/internal/links"
	"example.com/clusteredcache/reconcile/internal/testenv"
)

// source is a copy of the repository, so that make writes nothing into it.
func source(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source")
	for _, name := range []string{"api", "cmd", "deploy", "reconcile", "testdata"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(testenv.Root(), name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"CONTRIBUTING.md", "go.mod", "go.sum", "LICENSE", "Makefile", "README.md"} {
		write(t, filepath.Join(dir, name), read(t, name))
	}
	return dir
}

func makeIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("make", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+env.Assets+":"+os.Getenv("PATH"))
	if r := finish(t, cmd); r.status != 0 {
		t.Fatalf("make %v: %s%s", args, r.stdout, r.stderr)
	}
}

// kubectl finds what make install has put beside the program.
func TestMakeInstall(t *testing.T) {
	installed(t)
	prefix := t.TempDir()
	makeIn(t, source(t), "install", "PREFIX="+prefix, "VERSION=v9.9.9")
	for _, args := range [][]string{{"clusteredcache", "version"}, {"kubectl", "clusteredcache", "version"}} {
		cmd := exec.Command("sh", "-c", strings.Join(args, " "))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(prefix, "bin")+":"+env.Assets+":"+os.Getenv("PATH"))
		if r := finish(t, cmd); r.status != 0 || !strings.Contains(r.stdout, "v9.9.9") {
			t.Errorf("%v: %s%s", args, r.stdout, r.stderr)
		}
	}
	ns := env.Namespace(t)
	cacheIn(t, ns, "cache", false)
	cmd := exec.Command("sh", "-c", "kubectl clusteredcache diff -n "+ns)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(prefix, "bin")+":"+env.Assets+":"+os.Getenv("PATH"))
	if r := finish(t, cmd); r.status != 1 || !strings.Contains(r.stdout, "Plan: 4 create") {
		t.Errorf("kubectl clusteredcache diff: %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}

// A release of one platform: the archive has a program and documents without a
// broken link, the checksums are right, and install.yaml runs the image of the release. (The other platforms
// would be compiled for minutes.)
func TestMakeRelease(t *testing.T) {
	dir := source(t)
	makeIn(t, dir, "release", "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "VERSION=v9.9.9", "IMAGE=registry.example.com/tools/clusteredcache:v9.9.9")
	name := "clusteredcache_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	check := exec.Command("sh", "-c", "sha256sum -c checksums.txt || shasum -a 256 -c checksums.txt")
	check.Dir = filepath.Join(dir, "dist")
	if r := finish(t, check); r.status != 0 || !strings.Contains(r.stdout, name) || !strings.Contains(r.stdout, "install.yaml") {
		t.Errorf("checksums: %s%s", r.stdout, r.stderr)
	}
	unpacked := unpack(t, filepath.Join(dir, "dist", name))
	for _, name := range []string{"LICENSE", "README.md", "clusteredcache", "kubectl-clusteredcache", "deploy/kustomization.yaml"} {
		if _, err := os.Stat(filepath.Join(unpacked, name)); err != nil {
			t.Errorf("in the archive: %v", err)
		}
	}
	if broken, err := links.Broken(os.DirFS(unpacked)); err != nil || len(broken) > 0 {
		t.Errorf("in the archive: %v\n%s", err, strings.Join(broken, "\n"))
	}
	manifests, err := os.ReadFile(filepath.Join(dir, "dist", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, container := cronJob(t, string(manifests)); container.Image != "registry.example.com/tools/clusteredcache:v9.9.9" {
		t.Errorf("install.yaml runs %s", container.Image)
	}
	apply(t, string(manifests))
}

// unpack returns a folder with what is in the archive.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	if r := finish(t, exec.Command("tar", "-xzf", archive, "-C", dir)); r.status != 0 {
		t.Fatalf("tar: %s", r.stderr)
	}
	return dir
}
