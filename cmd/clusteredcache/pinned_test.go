package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportIntoMountedFile writes to a mounted file, such as the termination log
// of a container. It cannot be replaced, so it must be overwritten in place.
func TestReportIntoMountedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(file, []byte(strings.Repeat("before\n", 100)), 0o666); err != nil {
		t.Fatal(err)
	}
	mounted := func(command string) ([]byte, error) {
		cmd := exec.Command("unshare", "--mount", "--map-root-user", "sh", "-c", `mount --bind "$1" "$1" && `+command, "sh", file)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		return cmd.CombinedOutput()
	}
	if out, err := mounted("true"); err != nil {
		t.Skipf("cannot mount here: %v %s", err, out)
	}
	out, _ := mounted(`clusteredcache reconcile --server http://127.0.0.1:1 -o "text=$1"`)
	expect(t, "the report did not fail", string(out), "connection refused")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(b), "Incomplete: ") || !strings.HasSuffix(string(b), "0 failed\n") {
		t.Errorf("in the file:\n%s%s", b, out)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}

// TestReadOnlyDirectoryOfReport wants an unwritable report to be refused before the
// pass, not after it.
func TestReadOnlyDirectoryOfReport(t *testing.T) {
	cmd := exec.Command("unshare", "--mount", "--map-root-user", "sh", "-c", `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99
clusteredcache reconcile --server http://127.0.0.1:1 -o "json=$1/report.json"`, "sh", t.TempDir())
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 99 || strings.HasPrefix(string(out), "unshare: ") {
		t.Skipf("cannot mount here: %s", out)
	}
	if status := cmd.ProcessState.ExitCode(); status != int(exitUsage) {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", string(out), "report.json cannot be written: read-only file system")
}
