package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
)

func cache(name string, state model.State) model.CacheReport {
	return model.CacheReport{Namespace: "shop", Name: name, Verdict: model.Verdict{State: state, Message: "so it is"}}
}

// creating returns a cache whose StatefulSet is or would be created.
func creating() model.CacheReport {
	r := cache("a", model.Progressing)
	step := model.Step{Action: model.ActionCreate, Target: model.Ref{Kind: "StatefulSet", Namespace: "shop", Name: "a"}, Reason: "missing"}
	r.Plan.Steps = []model.Step{step}
	r.Outcomes = []model.Outcome{{Step: step, Result: model.Created}}
	return r
}

func fleet(total int, caches ...model.CacheReport) model.Fleet {
	return model.Fleet{Total: total, Caches: caches}
}

func TestContradictions(t *testing.T) {
	wantUsageErrors(t, "reconcile", []misuse{
		{"a -l x=y", "NAME and -l contradict"},
		{"a -A", "NAME and -A contradict"},
		{"a -n x -n y", "NAME with more than one -n"},
		{"-A -n x", "-A and -n contradict"},
		{"--wait --linger 1m", "--wait and --linger contradict"},
		{"--timeout 1m", "--timeout needs --wait"},
		{"--wait --timeout -1s", "--timeout must not be negative"},
		{"--linger -1s", "--linger must not be negative"},
		{"a --shard 0/2", "NAME and --shard contradict"},
		{"--shard 3/3", `invalid argument "3/3" for "--shard" flag: it must be INDEX/COUNT, INDEX from 0 to COUNT-1, such as 0/3`},
		{"--shard 1", `invalid argument "1" for "--shard" flag`},
		{"--concurrency 0", "--concurrency must be at least 1"},
		{"--fail-on never", "--fail-on must be stalled or failed"},
		{"--color green", "--color must be auto, always or never"},
		{"-o yaml", "-o yaml: the format must be text, json, markdown or name"},
		{"-o json=", "the name of the file is missing"},
		{"-o json -o text", "-o json and -o text both write to standard output"},
		{"-o json=/x -o text=/x", "both write to /x"},
		{"-o json=/no/such/dir/x", "there is no directory /no/such/dir"},
		{"-o json=/", "-o json=/: / is a directory"},
		{"-l a=b=c", `-l "a=b=c": `},
		{"shop/a", `"shop/a" cannot be the name of a ClusteredCache`},
		{"--namespace=", "-n: the namespace is empty"},
		{"-n x/y", `-n: "x/y" cannot be the name of a namespace`},
		{"--request-timeout soon", "--request-timeout soon: "},
		{"--nope", "unknown flag: --nope; see clusteredcache reconcile --help"},
		{"--timeout x", `invalid argument "x" for "--timeout" flag`},
	})
}

// misuse is a command line that cannot be used, and a part of the message.
type misuse struct{ args, want string }

// wantUsageErrors checks that each misuse gives a message of one line, and that no
// pass is made.
func wantUsageErrors(t *testing.T, command string, misuses []misuse) {
	t.Helper()
	for _, e := range misuses {
		t.Run(e.args, func(t *testing.T) {
			s := newStage(fleet(0))
			if status := s.run(t.Context(), append([]string{command}, strings.Fields(e.args)...)...); status != exitUsage {
				t.Errorf("exit status %d", status)
			}
			expect(t, "stderr", s.err.String(), "clusteredcache: ", e.want)
			if len(s.passes) > 0 || s.out.Len() > 0 || strings.Count(s.err.String(), "\n") != 1 {
				t.Errorf("%d passes, stdout %q, stderr %q", len(s.passes), &s.out, &s.err)
			}
		})
	}
}

func TestScope(t *testing.T) {
	tests := []struct {
		name, args string
		inCluster  bool
		want       string
	}{
		{"the context's namespace", "", false, "namespace shop"},
		{"in a pod everything", "", true, "all namespaces"},
		{"in a pod everything with these labels", "-l a=b", true, "all namespaces, labels a=b"},
		{"in a pod a name is of its own namespace", "x", true, "namespace shop, only x"},
		{"-A", "-A", false, "all namespaces"},
		{"-n", "-n b -n a,b", false, "namespaces a, b"},
		{"-n in a pod", "-n b", true, "namespace b"},
		{"names", "y x y", false, "namespace shop, only x, y"},
		{"names in a namespace", "x -n b -n b", false, "namespace b, only x"},
		{"labels", "-l a=b -n c", false, "namespace c, labels a=b"},
		{"a shard", "-A --shard 1/3", false, "shard 1/3 of all namespaces"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(fleet(1))
			s.load = func(connectionFlags) (*kube.Target, error) {
				return &kube.Target{Server: "https://s", InCluster: tc.inCluster, Namespace: "shop"}, nil
			}
			if status := s.run(t.Context(), append([]string{"reconcile"}, strings.Fields(tc.args)...)...); status != exitDone {
				t.Errorf("exit status %d: %s", status, &s.err)
			}
			first, _, _ := strings.Cut(s.err.String(), "\n")
			if !strings.HasSuffix(first, ", "+tc.want) {
				t.Errorf("first line %q, want the end %q", first, tc.want)
			}
		})
	}
}

func TestFirstLine(t *testing.T) {
	s := newStage(fleet(1))
	s.run(t.Context(), "reconcile")
	if want := "clusteredcache v0.0.0-dev: https://s (context c, user u), namespace shop\n"; s.err.String() != want {
		t.Errorf("got %q, want %q", &s.err, want)
	}
	if want := "Done: 0 created, 0 changed, 0 deleted; 0 held, 0 failed; 1 cache: 1 settled, 0 progressing, 0 stalled, 0 failed\n"; s.out.String() != want {
		t.Errorf("got %q, want %q", &s.out, want)
	}
}

func TestOptions(t *testing.T) {
	tests := []struct {
		args string
		want reconcile.Options
	}{
		{"", reconcile.Options{Concurrency: 10}},
		{"--wait --concurrency 3", reconcile.Options{Concurrency: 3, Wait: true, Timeout: 5 * time.Minute}},
		{"--wait --timeout 0", reconcile.Options{Concurrency: 10, Wait: true}},
		{"--linger 40s", reconcile.Options{Concurrency: 10, LingerUntil: time.Unix(40, 0)}},
	}
	for _, tc := range tests {
		s := newStage(fleet(1))
		s.run(t.Context(), append([]string{"reconcile"}, strings.Fields(tc.args)...)...)
		if len(s.passes) != 1 {
			t.Fatalf("%s: %d passes: %s", tc.args, len(s.passes), &s.err)
		}
		got := s.passes[0]
		if got.Concurrency != tc.want.Concurrency || got.Wait != tc.want.Wait || got.Timeout != tc.want.Timeout ||
			!got.LingerUntil.Equal(tc.want.LingerUntil) || got.Progress == nil {
			t.Errorf("%s: got %+v, want %+v", tc.args, got, tc.want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	terminated, cancel := context.WithCancelCause(context.Background())
	cancel(signalError{syscall.SIGTERM})
	interrupted, cancel := context.WithCancelCause(context.Background())
	cancel(signalError{os.Interrupt})
	timedOut := fleet(2, cache("a", model.NotDone))
	timedOut.TimedOut = true
	tests := []struct {
		name  string
		ctx   context.Context
		fleet model.Fleet
		err   error
		on    failOn
		want  exitStatus
	}{
		{name: "all settled", fleet: fleet(3), want: 0},
		{name: "progressing is not a failure", fleet: fleet(3, cache("a", model.Progressing)), want: 0},
		{name: "failed", fleet: fleet(3, cache("a", model.NotDone)), want: 3},
		{name: "failed with --fail-on=failed", fleet: fleet(3, cache("a", model.NotDone)), on: failOnFailed, want: 3},
		{name: "stalled", fleet: fleet(3, cache("a", model.Stalled)), want: 3},
		{name: "stalled with --fail-on=failed", fleet: fleet(3, cache("a", model.Stalled)), on: failOnFailed, want: 0},
		{name: "timed out wins over failed", fleet: timedOut, want: 4},
		{name: "could not run wins over timed out", fleet: timedOut, err: errors.New("x"), want: 5},
		{name: "SIGTERM wins over all", ctx: terminated, fleet: timedOut, err: errors.New("x"), want: 143},
		{name: "SIGINT", ctx: interrupted, want: 130},
		{name: "cut short by something else", fleet: model.Fleet{Interrupted: true}, want: 5},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(tc.fleet)
			pass := s.pass
			s.pass = func(ctx context.Context, c client.Client, o reconcile.Options) (model.Fleet, error) {
				f, _ := pass(ctx, c, o)
				return f, tc.err
			}
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			args := []string{"reconcile"}
			if tc.on != "" {
				args = append(args, "--fail-on", string(tc.on))
			}
			if got := s.run(ctx, args...); got != tc.want {
				t.Errorf("exit status %d, want %d: %s", got, tc.want, &s.err)
			}
			expect(t, "stdout", s.out.String(), "Done: ")
		})
	}
}

func TestQuestion(t *testing.T) {
	const asked, refused = "Apply? [y/N]", "Nothing was changed."
	change := fleet(1, creating())
	tests := []struct {
		name, typed, args string
		fleet             model.Fleet
		terminal          bool
		wantDry           []bool
		want, wantNot     string
	}{
		{name: "yes", terminal: true, typed: "Yes\n", fleet: change, wantDry: []bool{true, false}, want: asked, wantNot: refused},
		{name: "y", terminal: true, typed: "y\n", fleet: change, wantDry: []bool{true, false},
			want: "  + StatefulSet shop/a: missing\nPlan: 1 create, 0 change, 0 delete; 0 held\n" + asked},
		{name: "no", terminal: true, typed: "n\n", fleet: change, wantDry: []bool{true}, want: refused},
		{name: "just return", terminal: true, typed: "\n", fleet: change, wantDry: []bool{true}, want: refused},
		{name: "anything else", terminal: true, typed: "yep\n", fleet: change, wantDry: []bool{true}, want: refused},
		{name: "end of input", terminal: true, fleet: change, wantDry: []bool{true}, want: asked + " \n" + refused},
		{name: "nothing to do", terminal: true, fleet: fleet(1), wantDry: []bool{true, false}, wantNot: asked},
		{name: "--yes", terminal: true, args: "--yes", fleet: change, wantDry: []bool{false}, wantNot: asked},
		{name: "no terminal", fleet: change, wantDry: []bool{false}, wantNot: asked},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(tc.fleet)
			if tc.terminal {
				s.atTerminal(tc.typed)
			}
			args := append([]string{"reconcile", "--color=never"}, strings.Fields(tc.args)...)
			wantStatus := exitDone
			if strings.Contains(tc.want, refused) {
				wantStatus = exitIncomplete
			}
			if status := s.run(t.Context(), args...); status != wantStatus {
				t.Errorf("exit status %d: %s", status, &s.err)
			}
			if len(s.dryRun) != len(tc.wantDry) || s.dryRun[0] != tc.wantDry[0] {
				t.Errorf("passes dry %v, want %v", s.dryRun, tc.wantDry)
			}
			expect(t, "stderr", strings.ReplaceAll(s.err.String(), eraseLine, ""), tc.want)
			if tc.wantNot != "" && strings.Contains(s.err.String(), tc.wantNot) {
				t.Errorf("stderr has %q:\n%s", tc.wantNot, &s.err)
			}
			if wrote := !tc.wantDry[len(tc.wantDry)-1]; wrote != (s.out.Len() > 0) {
				t.Errorf("wrote: %v, stdout: %q", wrote, &s.out)
			}
		})
	}
}

func TestSignalAtTheQuestion(t *testing.T) {
	s := newStage(fleet(1, creating())).atTerminal("")
	ctx, cancel := context.WithCancelCause(t.Context())
	hanging, w := io.Pipe()
	defer func() { _ = w.Close() }()
	s.stdin = reading{hanging, func() { cancel(signalError{os.Interrupt}) }}
	if status := s.run(ctx, "reconcile"); status != 130 {
		t.Errorf("exit status %d, want 130", status)
	}
	expect(t, "stderr", s.err.String(), "Nothing was changed.")
	if len(s.passes) != 1 {
		t.Errorf("%d passes", len(s.passes))
	}
}

// reading is a Reader that calls begins before every read.
type reading struct {
	io.Reader
	begins func()
}

func (r reading) Read(b []byte) (int, error) {
	r.begins()
	return r.Reader.Read(b)
}

func TestDryRunThatCannotRun(t *testing.T) {
	s := newStage().atTerminal("y\n")
	s.pass = func(context.Context, client.Client, reconcile.Options) (model.Fleet, error) {
		return model.Fleet{}, errors.New("no API")
	}
	if status := s.run(t.Context(), "reconcile"); status != exitIncomplete {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", s.err.String(), "clusteredcache: no API\n")
}

func TestEmptySelection(t *testing.T) {
	s := newStage(fleet(0))
	if status := s.run(t.Context(), "reconcile", "-n", "shop"); status != exitDone {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", s.err.String(), "No ClusteredCaches found in namespace shop.\n")
}

func TestColor(t *testing.T) {
	stalled := fleet(1, cache("a", model.Stalled))
	tests := []struct {
		name, args, env string
		terminal, want  bool
	}{
		{name: "terminal", terminal: true, want: true},
		{name: "no terminal"},
		{name: "NO_COLOR", terminal: true, env: "NO_COLOR=1"},
		{name: "dumb terminal", terminal: true, env: "TERM=dumb"},
		{name: "never", terminal: true, args: "--color=never"},
		{name: "always wins over NO_COLOR", args: "--color=always", env: "NO_COLOR=1", want: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(stalled)
			if tc.terminal {
				s.atTerminal("")
			}
			s.getenv = func(name string) string {
				value, _ := strings.CutPrefix(tc.env, name+"=")
				if value == tc.env {
					return ""
				}
				return value
			}
			s.run(t.Context(), append([]string{"reconcile", "-y"}, strings.Fields(tc.args)...)...)
			if got := strings.Contains(s.out.String(), "\x1b["); got != tc.want {
				t.Errorf("colours: %v, want %v: %q", got, tc.want, &s.out)
			}
		})
	}
}

func TestHeartbeat(t *testing.T) {
	s := newStage().atTerminal("")
	s.pass = func(_ context.Context, _ client.Client, o reconcile.Options) (model.Fleet, error) {
		o.Progress(reconcile.Progress{Done: 7, Failed: 1, Waiting: 2})
		time.Sleep(3 * redrawEvery)
		return fleet(8), nil
	}
	s.run(t.Context(), "reconcile", "--yes")
	expect(t, "stderr", s.err.String(), eraseLine+"7 done, 1 failed, 2 waiting, 0s")
	if !strings.HasSuffix(s.err.String(), eraseLine) {
		t.Errorf("the progress line is left over: %q", &s.err)
	}
}

// TestConsole checks that a line is written above the progress line.
func TestConsole(t *testing.T) {
	var b strings.Builder
	c := &console{w: &b, terminal: true}
	c.setStatus("1 done")
	c.say("hello\x1b[2J")
	c.setStatus("")
	want := eraseLine + "1 done" + eraseLine + `hello\x1b[2J` + "\n1 done" + eraseLine
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

func TestJSONOnStdoutIsPure(t *testing.T) {
	s := newStage(fleet(0))
	s.run(t.Context(), "reconcile", "-o", "json")
	if !strings.HasPrefix(s.out.String(), "{\n") || !strings.HasSuffix(s.out.String(), "}\n") {
		t.Errorf("stdout %q", &s.out)
	}
}

func TestReportThatCannotBeWritten(t *testing.T) {
	s := newStage(fleet(1))
	s.stdout = brokenPipe{}
	if status := s.run(t.Context(), "reconcile"); status != exitIncomplete {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", s.err.String(), "writing the report: broken pipe")
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
