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

	"sigs.k8s.io/yaml"
)

const (
	module = "example.com/clusteredcache/"
	// root is the module's folder: tests run in the folder of their package.
	root = "../../.."
)

// impure are packages that a pure one has no use for, if it takes no context,
// client, logger or clock.
var impure = []string{"context", "log", "log/slog", "net/http", "k8s.io/klog/v2", "github.com/go-logr/logr"}

const controllerRuntime = "sigs.k8s.io/controller-runtime"

func TestArchitecture(t *testing.T) {
	graph, picture := load(t), readPicture(t)
	t.Run("the picture is the graph", func(t *testing.T) { pictureIsGraph(t, graph, picture) })
	t.Run("imports go down", func(t *testing.T) { importsGoDown(t, picture) })
	t.Run("pure packages have no client", func(t *testing.T) { purity(t, graph, picture) })
	t.Run("the linter says the same", func(t *testing.T) { linterAgrees(t, picture) })
	t.Run("the API is light", func(t *testing.T) { lightAPI(t, graph) })
}

// pictureIsGraph compares the edges of reconcile/doc.go with those of the code,
// in both directions.
func pictureIsGraph(t *testing.T, graph imports, p picture) {
	for _, pkg := range graph.own() {
		if covers("reconcile/internal/...", pkg) || covers("api/v1/applyconfiguration/...", pkg) {
			continue // tests, and what is generated
		}
		var edges []string
		for _, imported := range graph[module+pkg] {
			if other, ours := strings.CutPrefix(imported, module); ours && !covers("api/v1/applyconfiguration/...", other) {
				edges = append(edges, other)
			}
		}
		slices.Sort(edges)
		drawn, known := p.edges[pkg]
		if !known && len(edges) > 0 || !slices.Equal(drawn, edges) {
			t.Errorf("%s imports %v, and reconcile/doc.go says %v", pkg, edges, drawn)
		}
	}
	for pkg := range p.edges {
		if graph[module+pkg] == nil {
			t.Errorf("reconcile/doc.go has %s, which does not exist", pkg)
		}
	}
}

func importsGoDown(t *testing.T, p picture) {
	for pkg, edges := range p.edges {
		row, drawn := p.rows[pkg]
		if !drawn {
			t.Errorf("%s has edges in reconcile/doc.go and no row", pkg)
		}
		for _, other := range edges {
			if p.rows[other] <= row {
				t.Errorf("%s imports %s, which stands in no row below: let package model carry what both need", pkg, other)
			}
		}
	}
}

func purity(t *testing.T, graph imports, p picture) {
	for _, pkg := range p.pure {
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

// linterAgrees compares the rules of depguard, which an editor shows at once, with
// the picture.
func linterAgrees(t *testing.T, p picture) {
	content, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	type rule struct{ Files, Allow []string }
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]rule }
			}
		}
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	rules := config.Linters.Settings.Depguard.Rules
	for pkg, edges := range p.edges {
		name, below := strings.CutPrefix(pkg, "reconcile/")
		if !below {
			continue // they may import all that lies below
		}
		want := rule{Files: []string{"**/" + pkg + "/*.go", "!$test"}}
		for _, other := range edges {
			want.Allow = append(want.Allow, module+strings.TrimSuffix(other, "/v1"))
		}
		if got := rules[name]; !slices.Equal(got.Files, want.Files) || !slices.Equal(got.Allow, want.Allow) {
			t.Errorf("depguard has %v for %s, and the picture says %v", got, name, want)
		}
	}
	for _, pkg := range p.pure {
		if pkg != "api/v1" && !slices.Contains(rules["pure"].Files, "**/"+pkg+"/*.go") {
			t.Errorf("depguard's rule pure leaves out %s", pkg)
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

// picture is what reconcile/doc.go says of the packages.
type picture struct {
	rows  map[string]int      // package -> row of the drawing, from the top
	edges map[string][]string // package -> what it imports, sorted
	pure  []string
}

func readPicture(t *testing.T) picture {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "reconcile", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(content), "# Packages")
	text, _, _ = strings.Cut(text, "# Rights")
	p := picture{rows: map[string]int{}, edges: map[string][]string{}}
	row := 0
	for line := range strings.Lines(text) {
		drawn, isDrawn := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "//\t")
		switch pkg, edges, isEdges := strings.Cut(drawn, ":"); {
		case !isDrawn:
		case isEdges && !strings.Contains(pkg, " "):
			for _, other := range strings.Fields(edges) {
				p.edges[path(pkg)] = append(p.edges[path(pkg)], path(other))
			}
			slices.Sort(p.edges[path(pkg)])
		default:
			row++
			names, _, _ := strings.Cut(drawn, "  ")
			for _, name := range strings.Fields(names) {
				p.rows[path(name)] = row
			}
		}
	}
	_, sentence, _ := strings.Cut(text, "The pure packages are ")
	sentence, _, _ = strings.Cut(sentence, ".")
	for _, name := range strings.FieldsFunc(sentence, func(r rune) bool { return strings.ContainsRune(" ,\n", r) }) {
		if name != "and" && name != "//" {
			p.pure = append(p.pure, path(name))
		}
	}
	if len(p.rows) < 10 || len(p.edges) < 10 || len(p.pure) < 5 {
		t.Fatalf("reconcile/doc.go has no picture that can be read: %+v", p)
	}
	return p
}

// path is the path below the module of a package in the picture.
func path(name string) string {
	if name == "reconcile" || strings.Contains(name, "/") {
		return name
	}
	return "reconcile/" + name
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
