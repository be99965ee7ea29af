package architecture_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "example.com/clusteredcache/"
	// root is the module's folder: tests run in the folder of their package.
	root = "../../.."
)

type allowance struct {
	pkg     string
	imports []string
}

// allowed are, for each package of this module, the others that it may import.
// "/..." stands for a package and all below it. Packages for tests only, which
// are those under reconcile/internal, are in nobody's list.
var allowed = []allowance{
	{"api/v1", nil},
	{"api/v1/applyconfiguration/...", []string{"api/v1/..."}}, // generated
	{"reconcile/resources", []string{"api/v1/..."}},
	// Of api/v1 fields needs names: that of our manager, and an annotation of ours.
	{"reconcile/fields", []string{"api/v1"}},
	{"reconcile/health", []string{"api/v1", "reconcile/fields"}},
	{"reconcile/plan", []string{"api/v1/...", "reconcile/fields", "reconcile/health", "reconcile/resources"}},
	// Of resources observe and status need names, selectors and hashes, which
	// must be the same everywhere.
	{"reconcile/observe", []string{"api/v1/...", "reconcile/health", "reconcile/plan", "reconcile/resources"}},
	// Of resources manifest needs the hash of a ConfigMap.
	{"reconcile/manifest", []string{"api/v1", "reconcile/plan", "reconcile/resources"}},
	{"reconcile/status", []string{"api/v1/...", "reconcile/health", "reconcile/plan", "reconcile/resources"}},
	{"reconcile/apply", []string{"api/v1/...", "reconcile/fields", "reconcile/plan"}},
	{"reconcile/report", []string{"api/v1/...", "reconcile/fields", "reconcile/plan"}},
	{"reconcile/kube", []string{"api/v1/..."}},
	{"reconcile", []string{"api/v1/...", "reconcile/fields", "reconcile/resources", "reconcile/plan",
		"reconcile/observe", "reconcile/manifest", "reconcile/status", "reconcile/apply", "reconcile/report"}},
	// Of observe the command needs the scope that its flags describe, of manifest
	// the files that they name.
	{"cmd/clusteredcache", []string{"api/v1/...", "reconcile", "reconcile/manifest", "reconcile/observe", "reconcile/report", "reconcile/kube"}},
	{"reconcile/internal/...", []string{"..."}},
}

var (
	// stages of a pass know of each other only what package plan says.
	stages = []string{"reconcile/observe", "reconcile/manifest", "reconcile/apply", "reconcile/status", "reconcile/report"}

	pure = []string{"api/v1", "reconcile/fields", "reconcile/health", "reconcile/resources", "reconcile/plan", "reconcile/status", "reconcile/report"}

	// impure are packages that a pure one has no use for, if it takes no
	// context, client, logger or clock.
	impure = []string{"context", "log", "log/slog", "net/http", "k8s.io/klog/v2", "github.com/go-logr/logr"}
)

const controllerRuntime = "sigs.k8s.io/controller-runtime"

func TestArchitecture(t *testing.T) {
	graph := load(t)
	t.Run("imports within the module", func(t *testing.T) { withinTheModule(t, graph) })
	t.Run("stages do not know each other", func(t *testing.T) { stagesApart(t, graph) })
	t.Run("pure packages have no client", func(t *testing.T) { purity(t, graph) })
	t.Run("the API is light", func(t *testing.T) { lightAPI(t, graph) })
}

func withinTheModule(t *testing.T, graph imports) {
	for _, pkg := range graph.own() {
		at := slices.IndexFunc(allowed, func(a allowance) bool { return covers(a.pkg, pkg) })
		if at < 0 {
			t.Errorf("%s is not in the table of this test: add it, with what it may import", pkg)
			continue
		}
		for _, imported := range graph[module+pkg] {
			other, ours := strings.CutPrefix(imported, module)
			if ours && !slices.ContainsFunc(allowed[at].imports, func(pattern string) bool { return covers(pattern, other) }) {
				t.Errorf("%s imports %s, but may import only %s", pkg, other, strings.Join(allowed[at].imports, ", "))
			}
		}
	}
}

func stagesApart(t *testing.T, graph imports) {
	for _, from := range stages {
		for _, to := range stages {
			if chain := graph.chain(from, module+to); from != to && chain != "" {
				t.Errorf("%s reaches another stage: %s: let package plan carry what both need", from, chain)
			}
		}
	}
}

func purity(t *testing.T, graph imports) {
	for _, pkg := range pure {
		if chain := graph.chain(pkg, controllerRuntime+"/..."); chain != "" {
			t.Errorf("%s reaches a controller library: %s", pkg, chain)
		}
		for _, imported := range graph[module+pkg] {
			if slices.Contains(impure, imported) {
				t.Errorf("%s imports %s: a pure package takes plain data and returns plain data", pkg, imported)
			}
		}
	}
}

func lightAPI(t *testing.T, graph imports) {
	for _, imported := range graph[module+"api/v1"] {
		standard := !strings.Contains(imported, ".")
		if !standard && !covers("k8s.io/apimachinery/...", imported) && !covers("k8s.io/api/...", imported) {
			t.Errorf("api/v1 imports %s: whoever uses the types would have to take it too; only k8s.io/apimachinery, k8s.io/api and the standard library are allowed", imported)
		}
	}
}

// covers says whether pattern, which may end in "/...", stands for pkg.
func covers(pattern, pkg string) bool {
	below, wide := strings.CutSuffix(pattern, "...")
	return pkg == strings.TrimSuffix(below, "/") || wide && strings.HasPrefix(pkg, below)
}

// imports are the direct imports, tests left out, of every package that this
// module is built from, by import path.
type imports map[string][]string

func load(t *testing.T) imports {
	t.Helper()
	dependOnSource(t)
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	list.Dir = root
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	graph := imports{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return graph
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		graph[pkg.ImportPath] = pkg.Imports
	}
}

// dependOnSource reads the folders of the module. `go test` repeats a result
// while nothing has changed that the test itself has read, and what go list
// reads does not count.
func dependOnSource(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"api", "cmd", "reconcile"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
}

// own are the packages of this module, without its path.
func (g imports) own() []string {
	var packages []string
	for path := range g {
		if pkg, ours := strings.CutPrefix(path, module); ours {
			packages = append(packages, pkg)
		}
	}
	slices.Sort(packages)
	return packages
}

// chain is a shortest way from a package of this module to one that pattern
// stands for, as "a -> b -> c"; empty when there is none.
func (g imports) chain(from, pattern string) string {
	from = module + from
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g[queue[0]] {
			if _, seen := cameFrom[next]; seen {
				continue
			}
			cameFrom[next] = queue[0]
			if covers(pattern, next) {
				way := next
				for at := cameFrom[next]; at != ""; at = cameFrom[at] {
					way = at + " -> " + way
				}
				return strings.ReplaceAll(way, module, "")
			}
			queue = append(queue, next)
		}
	}
	return ""
}
