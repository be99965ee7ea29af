package crash_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// A write that the server stores and answers with an error all the same is
// repeated; nothing is there twice and the pass ends well.
func TestAmbiguousWrites(t *testing.T) {
	t.Parallel()
	for _, code := range []int{500, 503, 504} {
		w := world.Shared(t)
		w.Cache()
		faults := map[string]bool{}
		var mu sync.Mutex
		c := w.Behind(func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			mu.Lock()
			defer mu.Unlock()
			if world.IsWrite(r) && !faults[r.URL.Path] {
				faults[r.URL.Path] = true
				return world.Answer(r, code, "etcdserver: request timed out")
			}
			return response, err
		})
		f := w.Run(c, reconcile.Options{})
		if v := f.Verdict(); v.State != model.Progressing && v.State != model.Settled {
			t.Errorf("%d: %+v", code, v)
		}
		if len(faults) < 6 {
			t.Errorf("%d: only %d writes were spoilt", code, len(faults))
		}
		w.Settle()
		w.NothingToDo()
	}
}

// The server's wish to wait is honoured; a wish that goes beyond the patience
// for a request is a failure of this cache, others go on.
func TestThrottling(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Named("a").Cache()
	w.Named("b").Cache()
	w.Named("c").Cache()
	var short atomic.Int32
	start := time.Now()
	c := w.Behind(func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/statefulsets/b"):
			return world.Answer(r, http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "300")
		case world.IsWrite(r) && short.Add(1) <= 2:
			return world.Answer(r, http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "1")
		}
		return send()
	})
	f := w.Run(c, reconcile.Options{Concurrency: 3})
	for _, name := range []string{"a", "c"} {
		if v := f.Of(name).Verdict; v.State != model.Progressing {
			t.Errorf("%s: %+v", name, v)
		}
	}
	f.Of("b").Wants(model.NotDone, v1.ReasonApplyFailed)
	if took := time.Since(start); took < time.Second || took > time.Minute {
		t.Errorf("the pass took %s", took)
	}
	w.Settle()
}

// Credentials that are no longer accepted end the run at once, with one
// message; the next one goes on.
func TestCredentialsExpire(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	for i := range 6 {
		w.Named(fmt.Sprintf("cache-%d", i)).Cache()
	}
	var requests, refused atomic.Int32
	c := w.Behind(func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if requests.Add(1) > 12 {
			refused.Add(1)
			return world.Answer(r, http.StatusUnauthorized, "Unauthorized")
		}
		return send()
	})
	_, err := reconcile.Run(t.Context(), c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{w.NS}}, Concurrency: 2})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("the run ended with %v", err)
	}
	if n := refused.Load(); n == 0 || n > 4 {
		t.Errorf("%d requests after the first refusal, with two workers", n)
	}
	w.Settle()
	w.NothingToDo()
}

// A pass over what another pass has just done, more than a second later, moves
// neither a resourceVersion nor a time in managedFields.
func TestRepeatedPassesMoveNothing(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache(`spec: {podTemplate: {"spec":{"containers":[{"name":"cache","livenessProbe":{"timeoutSeconds":0,"periodSeconds":30}}]}}}`)
	w.Settle()
	for range 3 {
		w.NextSecond()
		w.NothingToDo()
	}
}

// Two passes that start together on a new cache both end well, and so does one
// beside a controller that writes the status in a tight loop.
func TestPassesAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	for i := range 4 {
		w.Named(fmt.Sprintf("cache-%d", i)).Cache()
	}
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() {
			for _, c := range w.Pass().Caches {
				if c.Verdict.State != model.Progressing && c.Verdict.State != model.Settled {
					t.Errorf("%s: %+v", c.Name, c.Verdict)
				}
			}
		})
	}
	runs.Wait()
	w.Settle()
	w.NothingToDo()

	ctx, stop := context.WithCancel(t.Context())
	busy := make(chan int)
	go func() { busy <- writeStatusUntil(ctx, w, "cache-0") }()
	w.Named("cache-0").Edit(`spec: {size: 4}`)
	f := w.Pass()
	stop()
	if n := <-busy; n < 2 {
		t.Errorf("the status was written %d times", n)
	}
	if v := f.Of("cache-0").Verdict; v.State != model.Progressing {
		t.Errorf("%+v", v)
	}
	w.Settle()
}

// writeStatusUntil changes an object's status over and over and says how often
// it did.
func writeStatusUntil(ctx context.Context, w *world.World, name string) (n int) {
	for i := 0; ctx.Err() == nil; i++ {
		s := &appsv1.StatefulSet{ObjectMeta: w.Meta(name)}
		condition := fmt.Sprintf(`{"status":{"conditions":[{"type":"Test","status":"True","message":"%d"}]}}`, i)
		if w.Env.Client.Status().Patch(ctx, s, client.RawPatch("application/merge-patch+json", []byte(condition))) == nil {
			n++
		}
	}
	return n
}

// A list's second page whose token the server no longer knows is asked for with
// the token that it offers; every cache is met once.
func TestExpiredTokenOfARealServer(t *testing.T) {
	t.Parallel()
	// A control plane of its own: others would lose their lists' tokens too.
	w := world.Separate(t, "--controller-manager=false")
	const caches = 130
	var keys []client.ObjectKey
	for i := range caches {
		keys = append(keys, client.ObjectKey{Namespace: w.NS, Name: fmt.Sprintf("cache-%03d", i)})
	}
	w.InParallel(keys, func(key client.ObjectKey) error {
		return w.Env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: w.Meta(key.Name), Spec: v1.ClusteredCacheSpec{Version: "1", Suspend: true}})
	})
	compact(w)
	config := w.Config()
	expired := 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &world.Standing{Next: next, Do: func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			query := r.URL.Query()
			if token := query.Get("continue"); token != "" && strings.HasSuffix(r.URL.Path, "/clusteredcaches") && expired == 0 {
				query.Set("continue", ancient(w, token))
				r = r.Clone(r.Context())
				r.URL.RawQuery = query.Encode()
				response, err := next.RoundTrip(r)
				if err == nil && response.StatusCode == http.StatusGone {
					expired++
				}
				return response, err
			}
			return send()
		}}
	})
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := w.Run(c, reconcile.Options{Concurrency: 2})
	if expired != 1 {
		t.Fatalf("%d tokens expired", expired)
	}
	names := map[string]int{}
	for _, r := range f.Caches {
		names[r.Name]++
	}
	if f.Total != caches || len(names) != caches {
		t.Errorf("%d caches, %d names", f.Total, len(names))
	}
}

// compact makes etcd forget all revisions but the last, as it does every five
// minutes.
func compact(w *world.World) {
	w.Helper()
	socket := filepath.Join(filepath.Dir(w.Env.Kubeconfig), "etcd.sock")
	etcd := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	call := func(path, body string) map[string]any {
		response, err := etcd.Post("http://etcd/v3/kv/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			w.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		answer := map[string]any{}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
			w.Fatalf("etcd: %s: %v, %v", response.Status, err, answer)
		}
		return answer
	}
	header := call("range", `{"key":"AA=="}`)["header"].(map[string]any)
	call("compaction", fmt.Sprintf(`{"revision":%q}`, header["revision"]))
}

// ancient is the token with a revision that no server keeps.
func ancient(w *world.World, token string) string {
	w.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		w.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&fields); err != nil {
		w.Fatal(err)
	}
	fields["rv"] = 1
	raw, err = json.Marshal(fields)
	if err != nil {
		w.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}
