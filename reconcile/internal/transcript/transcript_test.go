package transcript

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/clusteredcache/reconcile/internal/testenv"
)

var (
	env     *testenv.Env // with the CRD
	program string       // path of the built program
)

func TestMain(m *testing.M) { os.Exit(testenv.MainWithProgram(m, &env, &program)) }

// Each script has a namespace of its own in $NS, which is also the namespace
// of its kubeconfig's context.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			ns := env.Namespace(t)
			config, err := os.ReadFile(env.Kubeconfig)
			if err != nil {
				return err
			}
			own := filepath.Join(e.WorkDir, "kubeconfig")
			if err := os.WriteFile(own, config, 0o600); err != nil {
				return err
			}
			set := exec.Command(filepath.Join(env.Assets, "kubectl"), "--kubeconfig", own, "config", "set-context", "--current", "--namespace", ns)
			if out, err := set.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			e.Setenv("KUBECONFIG", own)
			e.Setenv("NS", ns)
			e.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+env.Assets+string(os.PathListSeparator)+os.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// exits STATUS COMMAND...: runs the command, which must end with that status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%s: exit status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// Without the CRD a pass cannot run, and one sentence says what to do.
func TestWithoutTheCRD(t *testing.T) {
	bare, err := testenv.Start("--crds=", "--controller-manager=false")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bare.Stop() })
	for _, args := range [][]string{{"-A"}, {"-n", "default"}, {"-n", "default", "name"}} {
		run := exec.Command(program, append([]string{"reconcile", "--kubeconfig", bare.Kubeconfig}, args...)...)
		out, err := run.CombinedOutput()
		if run.ProcessState.ExitCode() != 5 || !strings.Contains(string(out), "kubectl apply --server-side -f deploy/crd") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
