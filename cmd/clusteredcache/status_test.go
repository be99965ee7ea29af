package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
)

// looking is a stage where inspect returns f.
func looking(f model.Fleet) *stage {
	s := newStage(model.Fleet{})
	s.inspect = func(_ context.Context, _ client.Client, o reconcile.Options) (model.Fleet, error) {
		s.passes = append(s.passes, o)
		return f, nil
	}
	return s
}

func TestStatusContradictions(t *testing.T) {
	tests := []struct{ args, want string }{
		{"a -f x.yaml", "NAME and -f contradict"},
		{"-l a=b -f x.yaml", "-l and -f contradict"},
		{"-A -f x.yaml", "-A and -f contradict"},
		{"-f - -f -", "-f - twice"},
		{"--timeout 1m", "--timeout needs --wait"},
		{"--wait --timeout -1s", "--timeout must not be negative"},
		{"-o name", "-o name: the format must be text or json"},
		{"-o markdown=x", "the format must be text or json"},
		{"--yes", "unknown flag: --yes; see clusteredcache status --help"},
		{"--linger 1s", "unknown flag: --linger"},
		{"-f /no/such/file", "/no/such/file: no such file or directory"},
	}
	for _, tc := range tests {
		t.Run(tc.args, func(t *testing.T) {
			s := looking(fleet(0))
			if status := s.run(t.Context(), append([]string{"status"}, strings.Fields(tc.args)...)...); status != exitUsage {
				t.Errorf("exit status %d", status)
			}
			expect(t, "stderr", s.err.String(), "clusteredcache: ", tc.want)
			if len(s.passes) > 0 || s.out.Len() > 0 {
				t.Errorf("%d looks, stdout %q", len(s.passes), &s.out)
			}
		})
	}
}

func TestStatusOptions(t *testing.T) {
	name := file(t, someCache)
	for args, want := range map[string]reconcile.Options{
		"":                     {Concurrency: 10},
		"-v --concurrency 2":   {Concurrency: 2, Nodes: true},
		"--wait":               {Concurrency: 10, Wait: true, Timeout: 5 * time.Minute},
		"--wait --timeout 10s": {Concurrency: 10, Wait: true, Timeout: 10 * time.Second},
	} {
		for _, with := range []string{"", " -f " + name} {
			s := looking(fleet(1))
			if status := s.run(t.Context(), append([]string{"status"}, strings.Fields(args+with)...)...); status != exitDone {
				t.Fatalf("%s: exit status %d: %s", args, status, &s.err)
			}
			got := s.passes[0]
			if got.Concurrency != want.Concurrency || got.Nodes != want.Nodes || got.Wait != want.Wait || got.Timeout != want.Timeout ||
				(got.Manifests != nil) != (with != "") || got.Events {
				t.Errorf("%s: got %+v, want %+v", args+with, got, want)
			}
		}
	}
}

func TestStatusExit(t *testing.T) {
	timedOut := fleet(1, cache("a", model.Progressing))
	timedOut.TimedOut = true
	for name, tc := range map[string]struct {
		fleet model.Fleet
		want  exitStatus
	}{
		"settled":     {fleet(1, cache("a", model.Settled)), 0},
		"progressing": {fleet(1, cache("a", model.Progressing)), 0},
		"stalled":     {fleet(1, cache("a", model.Stalled)), 3},
		"failed":      {fleet(1, cache("a", model.NotDone)), 3},
		"timed out":   {timedOut, 4},
	} {
		s := looking(tc.fleet)
		if got := s.run(t.Context(), "status"); got != tc.want {
			t.Errorf("%s: exit status %d, want %d", name, got, tc.want)
		}
		expect(t, name, s.out.String(), "shop/a: ", "1 cache: ")
	}
}

func TestStatusNothingFound(t *testing.T) {
	s := looking(fleet(0))
	if status := s.run(t.Context(), "status"); status != exitDone {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", s.err.String(), "No ClusteredCaches found in namespace shop.")
	empty := file(t, "")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s = looking(fleet(0))
	if status := s.run(t.Context(), "status", "-f", empty); status != exitUsage || len(s.passes) > 0 {
		t.Errorf("exit status %d after %d looks", status, len(s.passes))
	}
}
