package world

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/clusteredcache/reconcile/internal/testenv"
)

// atOnce is how many tests run at the same time, whatever the number of cores:
// they mostly wait for controllers.
const atOnce = "8"

// shared is a control plane that is started when a test first asks for it.
type shared struct {
	flags []string

	once sync.Once
	env  *testenv.Env
	err  error
}

// running has the controllers, still has none.
var (
	running = &shared{}
	still   = &shared{flags: []string{"--controller-manager=false"}}
	program struct {
		once      sync.Once
		dir, path string
		err       error
	}
)

// separate holds a place for each control plane of one test's own. More of them at
// the same time would only slow each other down.
var separate = make(chan struct{}, 2)

// starting lets control planes start one after the other: that needs all cores.
var starting sync.Mutex

func start(flags ...string) (*testenv.Env, error) {
	starting.Lock()
	defer starting.Unlock()
	return testenv.Start(flags...)
}

func (s *shared) plane(t *testing.T) *testenv.Env {
	t.Helper()
	s.once.Do(func() { s.env, s.err = start(s.flags...) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.env
}

// Main runs the tests of a package, and stops what they started in the end.
func Main(m *testing.M) int {
	// The clients complain without a logger, and the API server warns of much
	// that tests do on purpose.
	log.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce)
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control planes:", err)
		return 1
	}
	return code
}

func stop() error {
	err := os.RemoveAll(program.dir)
	for _, s := range []*shared{running, still} {
		if s.env != nil {
			err = errors.Join(err, s.env.Stop())
		}
	}
	return err
}

// Program returns the path of clusteredcache, built once for the package.
func Program(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "clusteredcache-bin-"); program.err != nil {
			return
		}
		program.path = filepath.Join(program.dir, "clusteredcache")
		build := exec.Command("go", "build", "-o", program.path, "./cmd/clusteredcache")
		build.Dir = testenv.Root()
		if out, err := build.CombinedOutput(); err != nil {
			program.err = fmt.Errorf("build the program: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}
