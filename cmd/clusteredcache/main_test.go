package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"clusteredcache": main})
}

// TestScripts runs shell transcripts that need no cluster. "exits N COMMAND" runs
// COMMAND, which must exit with status N.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				got := 0
				var exit *exec.ExitError
				if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
					got = exit.ExitCode()
				} else {
					ts.Check(err)
				}
				if got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
		},
	})
}

// stage is a process without a cluster. The test provides the pass.
type stage struct {
	process
	out, err bytes.Buffer
	// passes holds the options of every pass, dryRun whether it was a dry run.
	passes []reconcile.Options
	dryRun []bool
}

// writing marks the client that really writes.
type writing struct{ client.Client }

func newStage(fleets ...model.Fleet) *stage {
	s := &stage{}
	s.process = process{
		stdin: strings.NewReader(""), stdout: &s.out, stderr: &s.err,
		getenv:     func(string) string { return "" },
		isTerminal: func(any) bool { return false },
		started:    time.Unix(0, 0),
		load: func(connectionFlags) (*kube.Target, error) {
			return &kube.Target{Config: &rest.Config{}, Server: "https://s", Context: "c", Identity: "u", Namespace: "shop"}, nil
		},
		connect: func(*kube.Target, *kube.Counter) (client.Client, error) { return writing{}, nil },
		pass: func(_ context.Context, c client.Client, o reconcile.Options) (model.Fleet, error) {
			_, writes := c.(writing)
			s.passes, s.dryRun = append(s.passes, o), append(s.dryRun, !writes)
			f := fleets[0]
			if len(fleets) > 1 {
				fleets = fleets[1:]
			}
			return f, nil
		},
		render: func(*manifest.Set) []reconcile.Rendered { return nil },
	}
	return s
}

// atTerminal makes the streams a terminal, where a person types typed.
func (s *stage) atTerminal(typed string) *stage {
	s.stdin = strings.NewReader(typed)
	s.isTerminal = func(any) bool { return true }
	return s
}

func (s *stage) run(ctx context.Context, args ...string) exitStatus { return run(ctx, args, s.process) }

func expect(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%s:\n%s\nwant %q in it", what, got, part)
		}
	}
}

func TestPanicIsNotAUsageError(t *testing.T) {
	var b bytes.Buffer
	if status := guarded(&b, func() exitStatus { panic("boom") }); status != exitIncomplete {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", b.String(), "panic: boom", "main_test.go")
}

func TestUntilSignal(t *testing.T) {
	ctx, again := untilSignal(t.Context())
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
	}
	if status := exitAfter(ctx, model.Fleet{}, nil, failOnStalled); status != 143 {
		t.Errorf("exit status %d, want 143", status)
	}
	select {
	case s := <-again:
		if signalled(s) != 143 {
			t.Errorf("second signal %v", s)
		}
	case <-time.After(10 * time.Second):
		t.Error("the second signal does not arrive")
	}
}

// TestSigterm signals a real process in the middle of a pass, while the API
// server does not answer.
func TestSigterm(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)

	var stdout, stderr bytes.Buffer
	cmd := exec.Command("clusteredcache", "reconcile", "--server", server.URL)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 143 {
		t.Errorf("got %v, want exit status 143", err)
	}
	expect(t, "stderr", stderr.String(), "a second signal stops at once")
	expect(t, "stdout", stdout.String(), "Interrupted: ", "Done: ")
}

func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	f := model.Fleet{Total: 1}
	if err := (output{jsonFormat, path}).write(nil, f, style{color: true}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, path, string(b), `"schema": "clusteredcache.report/v1"`)

	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := (output{textFormat, link}).write(nil, f, style{}); err != nil {
		t.Fatal(err)
	}
	if b, _ = os.ReadFile(path); !strings.HasPrefix(string(b), "Done: ") {
		t.Errorf("through a link: %s", b)
	}

	kept := errors.New("no")
	if err := replaceFile(path, func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return kept
	}); !errors.Is(err, kept) {
		t.Errorf("got %v", err)
	}
	if b, _ = os.ReadFile(path); !strings.HasPrefix(string(b), "Done: ") {
		t.Errorf("a failed write left %s", b)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	if err := (output{textFormat, "/dev/null"}).write(nil, f, style{}); err != nil {
		t.Error(err)
	}
}
