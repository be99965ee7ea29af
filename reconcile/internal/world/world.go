// Package world gives a test all that it acts on in one value: the test itself, a
// control plane, a namespace, the cache that it is about, and the passes over it.
//
//	w := world.Shared(t) // the controllers run; or world.Frozen(t): nothing moves by itself
//	w.Cache(`spec: {size: 2}`)
//	w.Settle().Wants(model.Settled, v1.ReasonReady)
//	w.Edit(`spec: {version: broken}`)
//	w.Until(v1.ReasonImagePullBackOff).Says("cache-1: ImagePullBackOff")
//
// Nothing here reaches a control plane but through the value, so that no test can
// write to one and look at another.
package world

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/clusteredcache/reconcile/internal/testenv"
)

// World is a test with a control plane and a namespace of its own.
type World struct {
	*testing.T
	Env *testenv.Env
	// NS is the namespace.
	NS string
	// Name is that of the cache which the methods are about.
	Name string

	config *rest.Config    // of passes
	also   []string        // further namespaces that passes are made over
	users  map[string]bool // with rights already
}

// Shared returns a new namespace on the package's control plane with controllers.
func Shared(t *testing.T) *World {
	t.Helper()
	return on(t, running.plane(t))
}

// Frozen returns a new namespace on the package's API server without controllers:
// nothing moves by itself there.
func Frozen(t *testing.T) *World {
	t.Helper()
	return on(t, still.plane(t))
}

// Separate returns a namespace on a control plane that no other test uses,
// started with flags of its supervisor. Each costs seconds: say why it is needed.
func Separate(t *testing.T, flags ...string) *World {
	t.Helper()
	separate <- struct{}{}
	t.Cleanup(func() { <-separate })
	env, err := start(flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return on(t, env)
}

// on makes a namespace. It is never deleted, as the control plane goes with the
// package: collecting what is in it would only slow the other tests down.
func on(t *testing.T, env *testenv.Env) *World {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := env.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &World{T: t, Env: env, NS: ns.Name, Name: "cache", config: env.Config, users: map[string]bool{}}
}

// Fresh returns a new namespace on the same control plane, for another test.
func (w *World) Fresh(t *testing.T) *World {
	t.Helper()
	fresh := on(t, w.Env)
	fresh.config = w.config
	return fresh
}

// Sub runs a subtest in a namespace of its own.
func (w *World) Sub(name string, test func(*World)) {
	w.T.Run(name, func(t *testing.T) { test(w.Fresh(t)) })
}

// Step runs a subtest in the same namespace.
func (w *World) Step(name string, test func(*World)) {
	w.T.Run(name, func(t *testing.T) {
		step := *w
		step.T = t
		test(&step)
	})
}

// Section does a part of a test. When it fails, the name of the part is told.
func (w *World) Section(name string, do func()) {
	w.Helper()
	before, ended := w.Failed(), false
	defer func() {
		if !ended || w.Failed() && !before {
			w.Logf("that was in the section %q", name)
		}
	}()
	do()
	ended = true
}

// Named returns the same world for another cache.
func (w *World) Named(name string) *World {
	other := *w
	other.Name = name
	return &other
}

// With returns the same world for passes over the namespaces of both.
func (w *World) With(other *World) *World {
	both := *w
	both.also = append(both.also[:len(both.also):len(both.also)], other.NS)
	return &both
}

// namespaces are those that passes are made over.
func (w *World) namespaces() []string { return append([]string{w.NS}, w.also...) }

// Meta is the metadata of an object in the namespace.
func (w *World) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.NS, Name: name}
}

// Eventually waits until what is so, for at most a minute: on a busy machine the
// controllers take their time.
func (w *World) Eventually(what string, so func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within a minute: %s", what)
		}
	}
}

// NextSecond waits until times that the API server writes, in whole seconds, are
// others than before.
func (w *World) NextSecond() {
	now := time.Now()
	time.Sleep(now.Truncate(time.Second).Add(1100 * time.Millisecond).Sub(now))
}

// forCleanup is for requests after the end of a test, whose own context is over.
func forCleanup() context.Context { return context.Background() }

// String is the name of the world in messages.
func (w *World) String() string { return fmt.Sprintf("%s/%s", w.NS, w.Name) }
