package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/fields"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
)

const someCache = "apiVersion: cache.example.com/v1\nkind: ClusteredCache\nmetadata: {name: a}\nspec: {version: '1'}\n"

// with returns a cache with one step, whose outcome is o.
func with(o model.Outcome) model.CacheReport {
	r := creating()
	o.Step = r.Plan.Steps[0]
	r.Outcomes = []model.Outcome{o}
	return r
}

// file writes a manifest and returns its name.
func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDiffContradictions(t *testing.T) {
	wantUsageErrors(t, "diff", []misuse{
		{"a -f x.yaml", "NAME and -f contradict"},
		{"-l a=b -f x.yaml", "-l and -f contradict"},
		{"-A -f x.yaml", "-A and -f contradict"},
		{"--shard 0/2 -f x.yaml", "--shard and -f contradict"},
		{"-n a -n b -f x.yaml", "-f with more than one -n"},
		{"-f - -f -", "-f - twice"},
		{"--filename=", "-f: the name of the file is empty"},
		{"a -A", "NAME and -A contradict"},
		{"-o yaml", "-o yaml: the format must be text, json, markdown or name"},
		{"-o name -o text", "both write to standard output"},
		{"--concurrency 0", "--concurrency must be at least 1"},
		{"--wait", "unknown flag: --wait; see clusteredcache diff --help"},
		{"--yes", "unknown flag: --yes"},
		{"--fail-on failed", "unknown flag: --fail-on"},
		{"-f /no/such/file", "/no/such/file: no such file or directory"},
	})
}

func TestDiffExitStatus(t *testing.T) {
	terminated, cancel := context.WithCancelCause(context.Background())
	cancel(signalError{syscall.SIGTERM})
	edited := cache("a", model.Settled)
	edited.Edit = &model.Edit{Changes: []fields.Change{{Path: "metadata.labels.a", To: `"b"`}}}
	added := cache("a", model.Stalled)
	added.Edit = &model.Edit{New: true}
	stored := cache("a", model.Settled)
	stored.Edit = &model.Edit{}
	held := cache("a", model.Stalled)
	held.Plan.Holds = []model.Hold{{Reason: "NameConflict", Class: model.Blocked}}
	status := cache("a", model.Progressing)
	status.StatusWritten = true
	left := creating()
	left.Outcomes = nil
	refused := with(model.Outcome{Result: model.Failed, Err: errors.New("no")})
	tests := []struct {
		name  string
		ctx   context.Context
		fleet model.Fleet
		err   error
		want  exitStatus
	}{
		{name: "all settled", fleet: fleet(3), want: 0},
		{name: "created", fleet: fleet(1, creating()), want: 1},
		{name: "not attempted", fleet: fleet(1, left), want: 1},
		{name: "estimated", fleet: fleet(1, with(model.Outcome{Result: model.Estimated})), want: 1},
		{name: "deleted", fleet: fleet(1, with(model.Outcome{Result: model.Deleted})), want: 1},
		{name: "finalized", fleet: fleet(1, with(model.Outcome{Result: model.Finalized})), want: 1},
		{name: "unchanged with a warning", fleet: fleet(1, with(model.Outcome{Result: model.Unchanged, Warning: "w"})), want: 0},
		{name: "an edit", fleet: fleet(1, edited), want: 1},
		{name: "a new cache", fleet: fleet(1, added), want: 1},
		{name: "a manifest that is stored already", fleet: fleet(1, stored), want: 0},
		{name: "held and stalled", fleet: fleet(1, held), want: 0},
		{name: "the status follows", fleet: fleet(1, status), want: 0},
		{name: "failed wins over changes", fleet: fleet(2, creating(), cache("b", model.NotDone)), want: 3},
		{name: "a refused step", fleet: fleet(2, creating(), refused), want: 3},
		{name: "could not run", fleet: fleet(2, creating(), cache("b", model.NotDone)), err: errors.New("x"), want: 5},
		{name: "cut short", fleet: model.Fleet{Interrupted: true, Caches: []model.CacheReport{creating()}}, want: 5},
		{name: "SIGTERM wins over all", ctx: terminated, fleet: fleet(1, creating()), err: errors.New("x"), want: 143},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(tc.fleet).atTerminal("")
			pass := s.pass
			s.pass = func(ctx context.Context, c client.Client, o reconcile.Options) (model.Fleet, error) {
				f, _ := pass(ctx, c, o)
				return f, tc.err
			}
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if got := s.run(ctx, "diff", "--color=never"); got != tc.want {
				t.Errorf("exit status %d, want %d: %s", got, tc.want, &s.err)
			}
			expect(t, "stdout", s.out.String(), "Plan: ")
			if said := strings.Contains(s.out.String(), "Incomplete: x\n"); said != (tc.err != nil) {
				t.Errorf("stdout %q", &s.out)
			}
			if len(s.dryRun) != 1 || !s.dryRun[0] || strings.Contains(s.err.String(), "[y/N]") {
				t.Errorf("dry runs %v, stderr %q", s.dryRun, &s.err)
			}
		})
	}
}

// TestDiffPanic checks that a fault in the program does not exit with 1, which
// means "there are changes".
func TestDiffPanic(t *testing.T) {
	s := newStage()
	s.pass = func(context.Context, client.Client, reconcile.Options) (model.Fleet, error) { panic("boom") }
	status := guarded(&s.err, func() exitStatus { return s.run(t.Context(), "diff") })
	if status != exitIncomplete {
		t.Errorf("exit status %d", status)
	}
}

func TestDiffOptions(t *testing.T) {
	s := newStage(fleet(1))
	if status := s.run(t.Context(), "diff", "x", "-n", "b", "--concurrency", "3"); status != exitDone {
		t.Fatalf("exit status %d: %s", status, &s.err)
	}
	o := s.passes[0]
	if o.Concurrency != 3 || o.Manifests != nil || o.Wait || !o.LingerUntil.IsZero() || len(o.Scope.Names) != 1 {
		t.Errorf("got %+v", o)
	}
	if got := o.Estimate(apierrors.NewNotFound(corev1.Resource("namespaces"), "b")); got == "" {
		t.Error("a missing namespace does not lead to an estimate")
	}
	expect(t, "stderr", s.err.String(), ", namespace b, only x\n")
}

func TestDiffFiles(t *testing.T) {
	others := someCache + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: t}\n"
	tests := []struct {
		name, content, args, stdin string
		namespace, said            string
	}{
		{name: "the context's namespace", content: someCache, namespace: "shop", said: ", with the manifests of "},
		{name: "-n", content: someCache, args: "-n other", namespace: "other"},
		{name: "stdin", args: "-f -", stdin: someCache, namespace: "shop", said: ", with the manifests of standard input\n"},
		{name: "other kinds", content: others, namespace: "shop", said: "Skipped 3 objects of other kinds: 1 Deployment, 2 Secret.\n"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(fleet(1))
			s.stdin = strings.NewReader(tc.stdin)
			args := append([]string{"diff"}, strings.Fields(tc.args)...)
			if tc.content != "" {
				args = append(args, "-f", file(t, tc.content))
			}
			if status := s.run(t.Context(), args...); status != exitDone {
				t.Fatalf("exit status %d: %s", status, &s.err)
			}
			m := s.passes[0].Manifests
			if m == nil || len(m.Caches) != 1 || m.Caches[0].Cache.Namespace != tc.namespace {
				t.Errorf("manifests %+v", m)
			}
			expect(t, "stderr", s.err.String(), tc.said)
		})
	}
}

func TestDiffOfNothing(t *testing.T) {
	s := newStage(fleet(0))
	s.stdin = strings.NewReader("apiVersion: v1\nkind: Pod\nmetadata: {name: s}\n")
	if status := s.run(t.Context(), "diff", "-f", "-"); status != exitUsage {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", s.err.String(), "Skipped 1 object of another kind: 1 Pod.\n", "clusteredcache: no ClusteredCaches found in standard input\n")
}

// TestDiffOutputs writes several reports at once. Only stdout gets colours.
func TestDiffOutputs(t *testing.T) {
	dir := t.TempDir()
	s := newStage(fleet(1, creating())).atTerminal("")
	status := s.run(t.Context(), "diff", "-o", "text", "-o", "markdown="+dir+"/d.md", "-o", "json="+dir+"/d.json", "-o", "name="+dir+"/d.txt")
	if status != exitChanges {
		t.Errorf("exit status %d: %s", status, &s.err)
	}
	expect(t, "stdout", s.out.String(), "\x1b[32m+\x1b[0m StatefulSet shop/a: missing", "Plan: 1 create, ")
	for name, want := range map[string]string{
		"d.md": "<!-- clusteredcache diff -->\n", "d.json": `"dryRun": true`, "d.txt": "shop/statefulset.apps/a\n",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, name, string(b), want)
		if bytes.Contains(b, []byte("\x1b")) {
			t.Errorf("%s has colours", name)
		}
	}
}

func TestDiffThatCannotBeWritten(t *testing.T) {
	s := newStage(fleet(1, creating()))
	s.stdout = brokenPipe{}
	if status := s.run(t.Context(), "diff"); status != exitIncomplete {
		t.Errorf("exit status %d", status)
	}
}

func rendering(rendered ...reconcile.Rendered) *stage {
	s := newStage()
	s.stdin = strings.NewReader(someCache)
	s.render = func(*manifest.Set) []reconcile.Rendered { return rendered }
	return s
}

func TestRender(t *testing.T) {
	service := func(name string) runtime.ApplyConfiguration { return corev1ac.Service(name, "shop") }
	s := rendering(
		reconcile.Rendered{Namespace: "shop", Name: "a", Objects: []runtime.ApplyConfiguration{service("w"), service("x")}},
		reconcile.Rendered{Namespace: "shop", Name: "b", Err: errors.Join(errors.New("f.yaml: one\n\x1b[2J"), errors.New("f.yaml: two"))},
		reconcile.Rendered{Namespace: "shop", Name: "c", Objects: []runtime.ApplyConfiguration{service("z")}},
	)
	if status := s.run(t.Context(), "render", "-f", "-"); status != exitPartial {
		t.Errorf("exit status %d", status)
	}
	document := func(name string) string {
		return "apiVersion: v1\nkind: Service\nmetadata:\n  name: " + name + "\n  namespace: shop\n"
	}
	if want := document("w") + "---\n" + document("x") + "---\n" + document("z"); s.out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &s.out, want)
	}
	want := "clusteredcache: shop/b: f.yaml: one\\n\\x1b[2J\nclusteredcache: shop/b: f.yaml: two\n1 of 3 ClusteredCaches cannot be rendered in full.\n"
	if !strings.HasPrefix(s.err.String(), want) || strings.Count(s.err.String(), "\n") != 3 {
		t.Errorf("stderr %q", &s.err)
	}
}

func TestRenderThatCannotBeWritten(t *testing.T) {
	s := rendering()
	s.stdout = brokenPipe{}
	if status := s.run(t.Context(), "render", "-f", "-"); status != exitIncomplete {
		t.Errorf("exit status %d", status)
	}
	expect(t, "stderr", s.err.String(), "writing the objects: broken pipe")
}

func TestRenderUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                     "-f is needed",
		"-f x y":               "render takes no arguments: pass each file with its own -f; see clusteredcache render --help",
		"-f - -f -":            "-f - twice",
		"-f x -n a/b":          `-n: "a/b" cannot be the name of a namespace`,
		"-f x --namespace=":    "-n: the namespace is empty",
		"-f x --kubeconfig y":  "unknown flag: --kubeconfig",
		"-f /no/such/file.yml": "stat /no/such/file.yml: no such file",
	} {
		t.Run(args, func(t *testing.T) {
			s := rendering()
			if status := s.run(t.Context(), append([]string{"render"}, strings.Fields(args)...)...); status != exitUsage {
				t.Errorf("exit status %d", status)
			}
			expect(t, "stderr", s.err.String(), "clusteredcache: "+want)
			if s.out.Len() > 0 || strings.Count(s.err.String(), "\n") != 1 {
				t.Errorf("stdout %q, stderr %q", &s.out, &s.err)
			}
		})
	}
}
