package world

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/manifest"
	"example.com/clusteredcache/reconcile/model"
)

// settling is how long Settle waits at most.
const settling = 2 * time.Minute

// Pass makes one pass over the namespace.
func (w *World) Pass() Fleet {
	w.Helper()
	return w.Run(w.Product(nil), reconcile.Options{Concurrency: 4})
}

// Settle makes passes until everything has settled, is stalled or failed.
func (w *World) Settle() Fleet {
	w.Helper()
	f := w.Run(w.Product(nil), reconcile.Options{Concurrency: 4, Wait: true, Timeout: settling})
	if f.TimedOut {
		w.Fatalf("not settled within %s: %+v", settling, f.Caches)
	}
	return f
}

// Run makes passes with a client of the test's, over the namespace unless the
// options name others.
func (w *World) Run(c client.Client, o reconcile.Options) Fleet {
	w.Helper()
	f, err := w.Try(c, o)
	if err != nil {
		w.Fatal(err)
	}
	return f
}

// Try is Run that may end with an error.
func (w *World) Try(c client.Client, o reconcile.Options) (Fleet, error) {
	w.Helper()
	f, err := reconcile.Run(w.Context(), c, w.scoped(o))
	return Fleet{f, w}, err
}

// scoped are options for the namespace.
func (w *World) scoped(o reconcile.Options) reconcile.Options {
	if o.Scope.Namespaces == nil && o.Manifests == nil {
		o.Scope.Namespaces = w.namespaces()
	}
	return o
}

// Everywhere makes passes over all namespaces that c shows.
func Everywhere(t *testing.T, c client.Client, o reconcile.Options) model.Fleet {
	t.Helper()
	f, err := reconcile.Run(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Look looks at the caches as a user who may only read.
func (w *World) Look(o reconcile.Options) Fleet {
	w.Helper()
	o.Concurrency = 2
	f, err := reconcile.Look(w.Context(), w.As(Reader()).Product(nil), w.scoped(o))
	if err != nil {
		w.Fatal(err)
	}
	return Fleet{f, w}
}

// Diff makes a pass with a dry-run client, and holds it to reads and dry runs.
func (w *World) Diff() Fleet {
	w.Helper()
	return w.diff(reconcile.Options{})
}

// DiffOf is the Diff of manifests.
func (w *World) DiffOf(manifests string) Fleet {
	w.Helper()
	return w.diff(reconcile.Options{Manifests: w.Manifests(manifests)})
}

// Manifests reads what a user would hand to the program.
func (w *World) Manifests(documents string) *manifest.Set {
	w.Helper()
	set, err := manifest.Read([]string{"-"}, strings.NewReader(documents), w.NS)
	if err != nil {
		w.Fatal(err)
	}
	return set
}

func (w *World) diff(o reconcile.Options) Fleet {
	w.Helper()
	c := w.Product(func(_ int, r *http.Request) {
		if r.Method != http.MethodGet && !isDryRun(r) {
			w.Errorf("a diff writes: %s %s", r.Method, r.URL)
		}
	})
	o.Concurrency, o.Estimate = 1, kube.CouldNotTry
	return w.Run(client.NewDryRunClient(c), o)
}

// isDryRun looks into the query, and for a deletion into the options in the body.
func isDryRun(r *http.Request) bool {
	if r.Method != http.MethodDelete {
		return r.URL.Query().Get("dryRun") == "All"
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	options := &metav1.DeleteOptions{}
	if err == nil {
		_, _, err = clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, options)
	}
	return err == nil && slices.Equal(options.DryRun, []string{metav1.DryRunAll})
}

// NothingToDo makes a pass that must neither write nor have anything to say.
func (w *World) NothingToDo() {
	w.Helper()
	w.WritesNothing("a pass over a converged fleet", func() {
		if f := w.Pass(); len(f.Caches) != 0 || f.Total == 0 {
			w.Errorf("a pass over a converged fleet has something to say: %+v", f.Fleet)
		}
	})
}

// WritesNothing holds what is done to leaving caches and children as they are.
func (w *World) WritesNothing(what string, do func()) {
	w.Helper()
	before := w.Versions()
	do()
	if d := cmp.Diff(before, w.Versions()); d != "" {
		w.Errorf("%s wrote:\n%s", what, d)
	}
}

// Versions are the resourceVersions of every cache and child.
func (w *World) Versions() map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, ns := range w.namespaces() {
		maps.Copy(all, w.versionsIn(ns))
	}
	return all
}
