package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// faulty is a client that panics over the StatefulSet of one cache, or over a
// list of StatefulSets.
type faulty struct {
	client.Client
	name string
}

func (f faulty) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if _, ok := o.(*appsv1.StatefulSet); ok && o.GetName() == f.name {
		panic("the fault of a test")
	}
	return f.Client.Patch(ctx, o, p, opts...)
}

func (f faulty) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*appsv1.StatefulSetList); ok && f.name == "" {
		panic("the fault of a test")
	}
	return f.Client.List(ctx, list, opts...)
}

// A fault in our own code is the failure of the cache that met it, with the
// stack in the log; one in reading a list, where no cache is known, cuts the
// pass short. Neither ends the process.
func TestPanicIsAFailure(t *testing.T) {
	w := world.Shared(t)
	for _, name := range []string{"a", "b", "c"} {
		w.Named(name).Cache()
	}
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	options := reconcile.Options{Scope: observe.Scope{Namespaces: []string{w.NS}}, Concurrency: 1}
	f := w.Run(faulty{w.Product(nil), "b"}, options)
	slog.SetDefault(before)
	f.Of("b").Wants(model.NotDone, v1.ReasonPanic)
	for _, name := range []string{"a", "c"} {
		if v := f.Of(name).Verdict; v.State != model.Progressing && v.State != model.Settled {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if !strings.Contains(log.String(), "the fault of a test") || !strings.Contains(log.String(), "panic_test.go") || !strings.Contains(log.String(), w.NS+"/b") {
		t.Errorf("the log: %s", &log)
	}
	_, err := reconcile.Run(t.Context(), faulty{w.Product(nil), ""}, options)
	if err == nil || !strings.Contains(err.Error(), "the fault of a test") || !strings.Contains(err.Error(), "panic_test.go") {
		t.Errorf("a fault in a list: %v", err)
	}
	w.Settle()
	w.NothingToDo()
}
