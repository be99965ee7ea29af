package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// step is one step of a pipeline: lines for a shell.
type step struct {
	Name string `json:"name"`
	Run  string `json:"run"`
}

// githubSteps are those with a name, in order.
func githubSteps(t *testing.T, job string) []step {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct{ Steps []step } `json:"jobs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/ci/github-actions.yaml")), &workflow); err != nil {
		t.Fatal(err)
	}
	var steps []step
	for _, s := range workflow.Jobs[job].Steps {
		if s.Run != "" {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		t.Fatalf("no job %s", job)
	}
	return steps
}

// gitlabSteps are the script of a job after that of the job it extends.
func gitlabSteps(t *testing.T, job string) ([]step, []int) {
	t.Helper()
	type gitlab struct {
		Extends      string   `json:"extends"`
		BeforeScript []string `json:"before_script"`
		Script       []string `json:"script"`
		AllowFailure struct {
			ExitCodes []int `json:"exit_codes"`
		} `json:"allow_failure"`
	}
	var raw map[string]json.RawMessage
	if err := yaml.Unmarshal([]byte(read(t, "deploy/ci/gitlab-ci.yaml")), &raw); err != nil {
		t.Fatal(err)
	}
	var own, base gitlab
	for name, into := range map[string]*gitlab{job: &own, ".caches": &base} {
		if err := json.Unmarshal(raw[name], into); err != nil {
			t.Fatal(err)
		}
	}
	if own.Extends != ".caches" {
		t.Fatalf("%s extends %q", job, own.Extends)
	}
	script := strings.Join(append(base.BeforeScript, own.Script...), "\n")
	return []step{{job, script}}, own.AllowFailure.ExitCodes
}

// workplace is where a pipeline runs: a directory with caches/, and a PATH with
// kubectl and stand-ins for what reaches out into the world.
type workplace struct {
	dir string
	env []string
}

func newWorkplace(t *testing.T, ns, more string) *workplace {
	t.Helper()
	w := &workplace{dir: t.TempDir()}
	tools := filepath.Join(w.dir, "tools")
	write(t, filepath.Join(w.dir, "caches", "caches.yaml"), manifest(more))
	// What `curl -O` would fetch is a release of the program under test.
	release := filepath.Join(w.dir, "release")
	if err := os.MkdirAll(release, 0o755); err != nil {
		t.Fatal(err)
	}
	archive := "clusteredcache_linux_amd64.tar.gz"
	for _, args := range [][]string{
		{"tar", "-czf", archive, "-C", filepath.Dir(program), "clusteredcache"},
		{"sh", "-c", "sha256sum " + archive + " >checksums.txt; echo '00  another.tar.gz' >>checksums.txt"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = release
		if r := finish(t, cmd); r.status != 0 {
			t.Fatal(r.stderr)
		}
	}
	w.tool(t, tools, "curl", `for url; do :; done; cp "`+release+`/${url##*/}" .`)
	// The first call lists comments, as --jq would have them.
	w.tool(t, tools, "gh", `echo "$@" >>gh.log; case " $* " in *" --method "*) cat comment.md >>posted.md ;; *) cat earlier 2>/dev/null || : ;; esac`)
	config, err := os.ReadFile(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.env = []string{
		"PATH=" + strings.Join([]string{filepath.Join(w.dir, "bin"), tools, env.Assets, os.Getenv("PATH")}, ":"),
		"HOME=" + w.dir, "NAMESPACE=" + ns, "CLUSTER=production", "RELEASE=https://downloads.example.com/v1", "SECRET=" + string(config),
		"GITHUB_PATH=" + filepath.Join(w.dir, "path"), "GITHUB_STEP_SUMMARY=" + filepath.Join(w.dir, "summary.md"),
		"GITHUB_REPOSITORY=example/caches", "PULL_REQUEST=7",
		"KUBECONFIG_DIFF=" + env.Kubeconfig, "KUBECONFIG_APPLY=" + env.Kubeconfig,
	}
	return w
}

func (w *workplace) tool(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.Chmod(write(t, filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs steps until one fails, as a runner does.
func (w *workplace) run(t *testing.T, steps []step) (string, int) {
	t.Helper()
	var said string
	for _, s := range steps {
		cmd := exec.Command("sh", "-ec", s.Run)
		cmd.Dir = w.dir
		cmd.Env = append([]string{}, w.env...)
		cmd.Env = append(cmd.Env, "KUBECONFIG=kubeconfig")
		out, err := cmd.CombinedOutput()
		said += string(out)
		if err != nil {
			return said, cmd.ProcessState.ExitCode()
		}
	}
	return said, 0
}

func (w *workplace) file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// manifest is a cache of the namespace that the pipeline is told.
func manifest(more string) string {
	return "apiVersion: cache.example.com/v1\nkind: ClusteredCache\nmetadata: {name: cache}\nspec: {version: \"1.6.38\"" + more + "}\n"
}

func TestGitHubDiff(t *testing.T) {
	installed(t)
	ns := env.Namespace(t)
	w := newWorkplace(t, ns, "")
	steps := githubSteps(t, "diff")
	if said, status := w.run(t, steps); status != 0 || !strings.Contains(said, "Plan: 3 create") {
		t.Fatalf("exit status %d\n%s", status, said)
	}
	log, comment := w.file(t, "gh.log"), w.file(t, "posted.md")
	if !strings.Contains(log, "--method POST repos/example/caches/issues/7/comments") {
		t.Errorf("gh was called with %s", log)
	}
	if !strings.HasPrefix(comment, "<!-- clusteredcache: production -->\n") || !strings.Contains(comment, "Plan: 3 create") {
		t.Errorf("the comment is\n%s", comment)
	}

	// The comment of the last run is replaced; the same way when nothing changes.
	write(t, filepath.Join(w.dir, "earlier"), "4711\n4712\n")
	if r := clusteredcache(t, "reconcile", "-n", ns); r.status != 0 {
		t.Fatal(r.stderr)
	}
	kubectl(t, "apply", "--server-side", "-n", ns, "-f", filepath.Join(w.dir, "caches"))
	if r := clusteredcache(t, "reconcile", "-n", ns, "--wait"); r.status != 0 {
		t.Fatal(r.stderr)
	}
	if said, status := w.run(t, steps); status != 0 || !strings.Contains(said, "Plan: 0 create") {
		t.Errorf("exit status %d\n%s", status, said)
	}
	if log := w.file(t, "gh.log"); !strings.Contains(log, "--method PATCH repos/example/caches/issues/comments/4711") {
		t.Errorf("gh was called with %s", log)
	}
}

func TestGitHubReconcile(t *testing.T) {
	installed(t)
	ns := env.Namespace(t)
	w := newWorkplace(t, ns, ", size: 2")
	steps := githubSteps(t, "reconcile")
	if said, status := w.run(t, steps); status != 0 {
		t.Fatalf("exit status %d\n%s", status, said)
	}
	if summary := w.file(t, "summary.md"); !strings.Contains(summary, "Done: 4 created") {
		t.Errorf("the summary is\n%s", summary)
	}
	write(t, filepath.Join(w.dir, "caches", "caches.yaml"), manifest(", size: 2, podTemplate: {nosuch: true}"))
	if said, status := w.run(t, steps); status != 3 || !strings.Contains(said, "::error::a cache failed or waits for a person") {
		t.Errorf("exit status %d\n%s", status, said)
	}
}

// What the steps make of each exit status of the program.
func TestPipelinesMapExitStatuses(t *testing.T) {
	installed(t)
	w := newWorkplace(t, env.Namespace(t), "")
	fake := filepath.Join(w.dir, "fake")
	w.env[0] = strings.Replace(w.env[0], "PATH=", "PATH="+fake+":", 1)
	last := func(steps []step) []step { // the program is in place, the credentials too
		return []step{{"", "export KUBECONFIG=" + env.Kubeconfig + "\n" + steps[len(steps)-1].Run}}
	}
	diff := githubSteps(t, "diff")
	gitlabDiff, allowed := gitlabSteps(t, "diff")
	gitlabReconcile, _ := gitlabSteps(t, "reconcile")
	fromExport := func(steps []step) []step {
		_, rest, _ := strings.Cut(steps[0].Run, "\nexport KUBECONFIG")
		return []step{{"", "export KUBECONFIG" + rest}}
	}
	for status, want := range map[int]struct{ diff, reconcile int }{
		0: {0, 0}, 1: {0, 1}, 2: {2, 2}, 3: {3, 3}, 4: {4, 4}, 5: {5, 5}, 143: {143, 143},
	} {
		w.tool(t, fake, "clusteredcache", "exit "+strconv.Itoa(status))
		if said, got := w.run(t, last(diff[:len(diff)-1])); got != want.diff {
			t.Errorf("GitHub diff, %d: %d\n%s", status, got, said)
		}
		said, got := w.run(t, last(githubSteps(t, "reconcile")))
		if got != want.reconcile || status > 0 && !strings.Contains(said, "::error::") {
			t.Errorf("GitHub reconcile, %d: %d\n%s", status, got, said)
		}
		if said, got := w.run(t, fromExport(gitlabDiff)); got != status {
			t.Errorf("GitLab diff, %d: %d\n%s", status, got, said)
		}
		if said, got := w.run(t, fromExport(gitlabReconcile)); got != status {
			t.Errorf("GitLab reconcile, %d: %d\n%s", status, got, said)
		}
	}
	if len(allowed) != 1 || allowed[0] != 1 {
		t.Errorf("GitLab allows %v", allowed)
	}
}

func TestGitLab(t *testing.T) {
	installed(t)
	ns := env.Namespace(t)
	w := newWorkplace(t, ns, "")
	diff, _ := gitlabSteps(t, "diff")
	if said, status := w.run(t, diff); status != 1 || !strings.Contains(w.file(t, "diff.md"), "Plan: 3 create") {
		t.Errorf("diff: exit status %d\n%s", status, said)
	}
	reconcile, _ := gitlabSteps(t, "reconcile")
	if said, status := w.run(t, reconcile); status != 0 || !strings.Contains(w.file(t, "done.md"), "Done: 3 created") {
		t.Errorf("reconcile: exit status %d\n%s", status, said)
	}
	if said, status := w.run(t, diff); status != 0 {
		t.Errorf("diff after reconcile: exit status %d\n%s", status, said)
	}
	if said, status := w.run(t, whereGitOpsApplies(t, "deploy/ci/gitlab-ci.yaml")); status != 0 || !strings.Contains(said, "1 settled") {
		t.Errorf("status: exit status %d\n%s", status, said)
	}
	write(t, filepath.Join(w.dir, "caches", "caches.yaml"), manifest(", podTemplate: {nosuch: true}"))
	w.run(t, reconcile)
	if said, status := w.run(t, whereGitOpsApplies(t, "deploy/ci/github-actions.yaml")); status != 3 {
		t.Errorf("status of a stalled cache: exit status %d\n%s", status, said)
	}
}

// whereGitOpsApplies is the command that a comment of an example puts in the place
// of its last one.
func whereGitOpsApplies(t *testing.T, file string) []step {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ *# +(clusteredcache status .*)$`).FindStringSubmatch(read(t, file))
	if m == nil {
		t.Fatalf("no command in %s", file)
	}
	return []step{{"status", "export KUBECONFIG=$KUBECONFIG_APPLY PATH=$PWD/bin:$PATH\n" + m[1]}}
}
