package stories_test

import (
	"fmt"

	"example.com/clusteredcache/reconcile/internal/world"
	"github.com/google/go-cmp/cmp"

	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/model"
)

// What the API server takes and what it refuses when a cache is created, with
// the same sentence that the program uses.
func TestCreationRules(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, c := range []struct {
		name   string
		spec   func(*v1.ClusteredCacheSpec)
		says   string
		accept bool
	}{
		{name: strings.Repeat("a", 52), accept: true},
		{name: strings.Repeat("a", 53), says: v1.MessageName},
		{name: strings.Repeat("a", 57), says: v1.MessageName},
		{name: strings.Repeat("a", 63), says: v1.MessageName},
		{name: "7cache", says: v1.MessageName},
		{name: "a.b", says: v1.MessageName},
		{name: "tag-digest", spec: func(s *v1.ClusteredCacheSpec) { s.Version = "7.2.4@" + digest }, accept: true},
		{name: "digest", spec: func(s *v1.ClusteredCacheSpec) { s.Version = digest }, accept: true},
		{name: "dash", spec: func(s *v1.ClusteredCacheSpec) { s.Version = "7.2.4-" }, accept: true},
		{name: "long-tag", spec: func(s *v1.ClusteredCacheSpec) { s.Version = strings.Repeat("v", 70) }, accept: true},
		{name: "build", spec: func(s *v1.ClusteredCacheSpec) { s.Version = "7.2.4+build.5" }, says: v1.MessageVersion},
		{name: "empty", spec: func(s *v1.ClusteredCacheSpec) { s.Version = "" }, says: "spec.version"},
		{name: "short-digest", spec: func(s *v1.ClusteredCacheSpec) { s.Version = "1@sha256:00" }, says: v1.MessageVersion},
		{name: "negative", spec: func(s *v1.ClusteredCacheSpec) { s.Size = -1 }, says: v1.MessageSize},
		{name: "huge", spec: func(s *v1.ClusteredCacheSpec) { s.Size = v1.MaxSize + 1 }, says: v1.MessageSizeMaximum},
		{name: "storage", spec: func(s *v1.ClusteredCacheSpec) { s.Storage = &v1.StorageSpec{} }, says: v1.MessageStorage},
		{name: "no-image", spec: func(s *v1.ClusteredCacheSpec) { s.Engine = v1.EngineCustom }, says: v1.MessageImageMissing},
		{name: "image-tag", spec: func(s *v1.ClusteredCacheSpec) { s.Image = "example.com/cache:1" }, says: v1.MessageImage},
		{name: "hooks", spec: hooksNamed("backup", "flush"), accept: true},
		{name: "hooks-twice", spec: hooksNamed("backup", "flush", "backup"), says: v1.MessageHookNames},
		{name: "hook-named-all", spec: hooksNamed("all"), says: v1.MessageHookAll},
		{name: "hook-name", spec: hooksNamed("Backup"), says: "spec.deletion.hooks[0].name"},
		{name: "hook-long-name", spec: hooksNamed(strings.Repeat("h", 33)), says: "spec.deletion.hooks[0].name"},
		{name: "hooks-many", spec: hooksNamed(strings.Split("abcdefghijklmnopq", "")...), says: "must have at most 16 items"},
		{name: "drain", spec: func(s *v1.ClusteredCacheSpec) { s.Deletion = &v1.DeletionSpec{DrainSeconds: -1} }, says: "spec.deletion.drainSeconds"},
		{name: "on-failure", spec: func(s *v1.ClusteredCacheSpec) { s.Deletion = &v1.DeletionSpec{OnFailure: "Maybe"} }, says: "spec.deletion.onFailure"},
		{name: "attempts", spec: func(s *v1.ClusteredCacheSpec) { hooksNamed("a")(s); s.Deletion.Hooks[0].Attempts = 21 }, says: "attempts"},
		{name: "timeout", spec: func(s *v1.ClusteredCacheSpec) { hooksNamed("a")(s); s.Deletion.Hooks[0].TimeoutSeconds = 86401 }, says: "timeoutSeconds"},
		{name: "engine", spec: func(s *v1.ClusteredCacheSpec) { s.Engine = "Redis" }, says: "Unsupported value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := &v1.ClusteredCache{ObjectMeta: w.Meta(c.name), Spec: v1.ClusteredCacheSpec{Version: "1"}}
			if c.spec != nil {
				c.spec(&cache.Spec)
			}
			err := w.Env.Client.Create(t.Context(), cache, client.DryRunAll)
			if c.accept != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("accepted %t: %v", err == nil, err)
			}
		})
	}
	t.Run("engine is immutable", func(t *testing.T) {
		w.Named("fixed").Cache()
		err := w.Env.Client.Patch(t.Context(), w.Named("fixed").Stored(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"engine":"Custom","image":"x"}}`)))
		if err == nil || !strings.Contains(err.Error(), "engine is immutable") {
			t.Error(err)
		}
	})
}

func hooksNamed(names ...string) func(*v1.ClusteredCacheSpec) {
	return func(s *v1.ClusteredCacheSpec) {
		s.Deletion = &v1.DeletionSpec{}
		for _, name := range names {
			s.Deletion.Hooks = append(s.Deletion.Hooks, v1.Hook{Name: name, Image: "example.com/hook"})
		}
	}
}

// What the program fills in for a manifest that no server has seen is what the
// server fills in.
func TestDefaultsAreTheServers(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	for name, spec := range map[string]v1.ClusteredCacheSpec{
		"smallest": {Version: "1"},
		"hooks":    {Version: "1", Deletion: &v1.DeletionSpec{Hooks: []v1.Hook{{Name: "a", Image: "x"}}}},
		"storage":  {Version: "1", Engine: v1.EngineCustom, Image: "example.com/cache", Storage: &v1.StorageSpec{Size: resource.MustParse("1Gi")}},
	} {
		ours := &v1.ClusteredCache{ObjectMeta: w.Meta(name), Spec: *spec.DeepCopy()}
		theirs := ours.DeepCopy()
		ours.Default()
		w.Create(theirs, client.DryRunAll)
		if d := cmp.Diff(theirs.Spec, ours.Spec) + cmp.Diff(theirs.Status, ours.Status); d != "" {
			t.Errorf("%s: the server's (-), ours (+):\n%s", name, d)
		}
	}
}

// Every legal version becomes an object that the API server takes.
func TestVersionsReachTheCluster(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, version := range map[string]string{"both": "7.2.4@" + digest, "digest": digest, "dash": "7.2.4-", "long": strings.Repeat("v", 70)} {
		w.Named(name).Cache(fmt.Sprintf("spec: {version: %q}", version))
	}
	f := w.Settle()
	for _, name := range []string{"both", "digest", "dash", "long"} {
		f.Of(name).Wants(model.Settled, v1.ReasonReady)
		c := w.Named(name).Stored()
		if c.Status.CurrentVersion != c.Spec.Version {
			t.Errorf("%s: currentVersion %q, want %q", name, c.Status.CurrentVersion, c.Spec.Version)
		}
		image := w.Named(name).StatefulSet().Spec.Template.Spec.Containers[0].Image
		if !strings.HasSuffix(image, c.Spec.Version) {
			t.Errorf("%s: image %s", name, image)
		}
	}
	w.NothingToDo()
}

// Caches stored before a rule existed: nothing is made for them, their status
// says why, and they can be deleted. One that does not even decode is reported
// by itself.
func TestStoredBeforeTheRules(t *testing.T) {
	t.Parallel()
	// A control plane of its own: the CRD is replaced for a while.
	w := world.Separate(t, "--controller-manager=false")
	real := crd(t)
	lax := real.DeepCopy()
	schema := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	if err := unstructured.SetNestedField(versionOf(lax), schema, "schema", "openAPIV3Schema"); err != nil {
		t.Fatal(err)
	}
	replaceCRD(w, lax)
	stored := map[string]string{
		strings.Repeat("n", 53): `{"size":3,"version":"1"}`,
		"7cache":                `{"size":3,"version":"1"}`,
		"version":               `{"size":3,"version":"1+2"}`,
		"size":                  `{"size":0,"version":"1"}`,
		"image":                 `{"size":3,"version":"1","engine":"Custom"}`,
		"hooks":                 `{"size":3,"version":"1","deletion":{"hooks":[{"name":"a","image":"x"},{"name":"a","image":"x"}],"drainSeconds":-1}}`,
		"undecodable":           `{"size":3,"version":"1","suspend":"maybe"}`,
		"good":                  `{"size":3,"version":"1"}`,
	}
	for name, spec := range stored {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`{"apiVersion":"cache.example.com/v1","kind":"ClusteredCache","spec":`+spec+`}`), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(w.NS)
		u.SetName(name)
		u.SetFinalizers([]string{v1.Finalizer})
		u.SetAnnotations(map[string]string{v1.SkipHooksAnnotation: v1.SkipAllHooks})
		w.Eventually("the lax schema holds", func() bool { return w.Env.Client.Create(t.Context(), u) == nil })
	}
	replaceCRD(w, real)
	w.Eventually("the real schema holds", func() bool {
		err := w.Env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: w.Meta("8cache"), Spec: v1.ClusteredCacheSpec{Version: "1"}}, client.DryRunAll)
		return apierrors.IsInvalid(err)
	})

	f := w.Pass()
	if f.Total != len(stored) {
		t.Errorf("%d caches, want %d", f.Total, len(stored))
	}
	for name := range stored {
		state, reason := model.Stalled, v1.ReasonSpecInvalid
		switch {
		case len(name) > 52 || name == "7cache":
			reason = v1.ReasonNameInvalid
		case name == "undecodable":
			state, reason = model.NotDone, v1.ReasonUndecodable
		case name == "good":
			state, reason = model.Progressing, v1.ReasonProgressing
		}
		if name == "good" {
			if v := f.Of(name).Verdict; v.State != state {
				t.Errorf("%s: %+v", name, v)
			}
			continue
		}
		f.Of(name).Wants(state, reason)
		for _, o := range []client.Object{&appsv1.StatefulSet{}, &corev1.Service{}} {
			if err := w.Env.Client.Get(t.Context(), client.ObjectKey{Namespace: w.NS, Name: name}, o); !apierrors.IsNotFound(err) {
				t.Errorf("%s: %T exists (%v)", name, o, err)
			}
		}
		if name != "undecodable" {
			c := &v1.ClusteredCache{}
			if err := w.Env.Client.Get(t.Context(), client.ObjectKey{Namespace: w.NS, Name: name}, c); err != nil {
				t.Fatal(err)
			}
			if r := world.ConditionOf(c, v1.ConditionStalled).Reason; r != reason {
				t.Errorf("%s: status was not written: %+v", name, c.Status)
			}
		}
	}
	for name := range stored {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind))
		u.SetNamespace(w.NS)
		u.SetName(name)
		w.Delete(u)
	}
	w.Pass()
	list := &v1.ClusteredCacheList{}
	left := &unstructured.UnstructuredList{}
	left.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind + "List"))
	w.List(left)
	if len(left.Items) != 1 || left.Items[0].GetName() != "undecodable" {
		t.Errorf("left: %d, %+v", len(left.Items), list)
	}
}

func crd(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(), "deploy", "crd", "cache.example.com_clusteredcaches.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func versionOf(crd *unstructured.Unstructured) map[string]any {
	return crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
}

func replaceCRD(w *world.World, crd *unstructured.Unstructured) {
	w.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(crd.GroupVersionKind())
	if err := w.Env.Client.Get(w.Context(), client.ObjectKeyFromObject(crd), live); err != nil {
		w.Fatal(err)
	}
	crd = crd.DeepCopy()
	crd.SetResourceVersion(live.GetResourceVersion())
	if err := w.Env.Client.Update(w.Context(), crd); err != nil {
		w.Fatal(err)
	}
}
