package stories_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// between stands between the program and the API server. It returns the answer
// to a request, or calls send for the server's.
type between func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)

type standing struct {
	next http.RoundTripper
	do   between
}

func (s *standing) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.do(r, func() (*http.Response, error) { return s.next.RoundTrip(r) })
}

func clientBehind(t *testing.T, do between) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Timeout = 4 * time.Second
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &standing{next, do} })
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer is what a server says that does not do what it was asked for.
func answer(r *http.Request, code int, reason string, headers ...string) (*http.Response, error) {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s (a test's answer)","reason":%q,"code":%d}`, reason, reason, code)
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// A write that the server stores and answers with an error all the same is
// repeated; nothing is there twice and the pass ends well.
func TestAmbiguousWrites(t *testing.T) {
	for _, code := range []int{500, 503, 504} {
		ns := env.Namespace(t)
		create(t, ns, "cache")
		faults := map[string]bool{}
		var mu sync.Mutex
		c := clientBehind(t, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			mu.Lock()
			defer mu.Unlock()
			if isWrite(r) && !faults[r.URL.Path] {
				faults[r.URL.Path] = true
				return answer(r, code, "etcdserver: request timed out")
			}
			return response, err
		})
		f := runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}})
		if v := verdict(t, f, "cache"); v.State != model.Progressing && v.State != model.Settled {
			t.Errorf("%d: %+v", code, v)
		}
		if len(faults) < 6 {
			t.Errorf("%d: only %d writes were spoilt", code, len(faults))
		}
		settle(t, ns)
		wantNothingToDo(t, ns)
	}
}

// The server's wish to wait is honoured; a wish that goes beyond the patience
// for a request is a failure of this cache, others go on.
func TestThrottling(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "a")
	create(t, ns, "b")
	create(t, ns, "c")
	var short atomic.Int32
	start := time.Now()
	c := clientBehind(t, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/statefulsets/b"):
			return answer(r, http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "300")
		case isWrite(r) && short.Add(1) <= 2:
			return answer(r, http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "1")
		}
		return send()
	})
	f := runWith(t, c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 3})
	for _, name := range []string{"a", "c"} {
		if v := verdict(t, f, name); v.State != model.Progressing {
			t.Errorf("%s: %+v", name, v)
		}
	}
	wantVerdict(t, f, "b", model.NotDone, v1.ReasonApplyFailed)
	if took := time.Since(start); took < time.Second || took > time.Minute {
		t.Errorf("the pass took %s", took)
	}
	settle(t, ns)
}

// Credentials that are no longer accepted end the run at once, with one
// message; the next one goes on.
func TestCredentialsExpire(t *testing.T) {
	ns := env.Namespace(t)
	for i := range 6 {
		create(t, ns, fmt.Sprintf("cache-%d", i))
	}
	var requests, refused atomic.Int32
	c := clientBehind(t, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if requests.Add(1) > 12 {
			refused.Add(1)
			return answer(r, http.StatusUnauthorized, "Unauthorized")
		}
		return send()
	})
	_, err := reconcile.Run(t.Context(), c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Concurrency: 2})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("the run ended with %v", err)
	}
	if n := refused.Load(); n == 0 || n > 4 {
		t.Errorf("%d requests after the first refusal, with two workers", n)
	}
	settle(t, ns)
	wantNothingToDo(t, ns)
}

// A pass over what another pass has just done, more than a second later, moves
// neither a resourceVersion nor a time in managedFields.
func TestRepeatedPassesMoveNothing(t *testing.T) {
	ns := env.Namespace(t)
	create(t, ns, "cache", func(c *v1.ClusteredCache) {
		c.Spec.PodTemplate = raw(`{"spec":{"containers":[{"name":"cache","livenessProbe":{"timeoutSeconds":0,"periodSeconds":30}}]}}`)
	})
	settle(t, ns)
	for range 3 {
		time.Sleep(1100 * time.Millisecond)
		wantNothingToDo(t, ns)
	}
}

// Two passes that start together on a new cache both end well, and so does one
// beside a controller that writes the status in a tight loop.
func TestPassesAtTheSameTime(t *testing.T) {
	ns := env.Namespace(t)
	for i := range 4 {
		create(t, ns, fmt.Sprintf("cache-%d", i))
	}
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() {
			for _, c := range pass(t, ns).Caches {
				if c.Verdict.State != model.Progressing && c.Verdict.State != model.Settled {
					t.Errorf("%s: %+v", c.Name, c.Verdict)
				}
			}
		})
	}
	runs.Wait()
	settle(t, ns)
	wantNothingToDo(t, ns)

	ctx, stop := context.WithCancel(t.Context())
	busy := make(chan int)
	go func() { busy <- writeStatusUntil(ctx, ns, "cache-0") }()
	update(t, &v1.ClusteredCache{ObjectMeta: meta(ns, "cache-0")}, func(c *v1.ClusteredCache) { c.Spec.Size = 4 })
	f := pass(t, ns)
	stop()
	if n := <-busy; n < 2 {
		t.Errorf("the status was written %d times", n)
	}
	if v := verdict(t, f, "cache-0"); v.State != model.Progressing {
		t.Errorf("%+v", v)
	}
	settle(t, ns)
}

// writeStatusUntil changes an object's status over and over and says how often
// it did.
func writeStatusUntil(ctx context.Context, ns, name string) (n int) {
	for i := 0; ctx.Err() == nil; i++ {
		s := &appsv1.StatefulSet{ObjectMeta: meta(ns, name)}
		condition := fmt.Sprintf(`{"status":{"conditions":[{"type":"Test","status":"True","message":"%d"}]}}`, i)
		if env.Client.Status().Patch(ctx, s, client.RawPatch("application/merge-patch+json", []byte(condition))) == nil {
			n++
		}
	}
	return n
}

// A list's second page whose token the server no longer knows is asked for with
// the token that it offers; every cache is met once.
func TestExpiredTokenOfARealServer(t *testing.T) {
	env := frozen(t)
	ns := env.Namespace(t)
	const caches = 130
	var keys []client.ObjectKey
	for i := range caches {
		keys = append(keys, client.ObjectKey{Namespace: ns, Name: fmt.Sprintf("cache-%03d", i)})
	}
	inParallel(t, keys, func(key client.ObjectKey) error {
		return env.Client.Create(t.Context(), &v1.ClusteredCache{ObjectMeta: meta(ns, key.Name), Spec: v1.ClusteredCacheSpec{Version: "1", Suspend: true}})
	})
	compact(t, env)
	config := rest.CopyConfig(env.Config)
	expired := 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &standing{next, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			query := r.URL.Query()
			if token := query.Get("continue"); token != "" && strings.HasSuffix(r.URL.Path, "/clusteredcaches") && expired == 0 {
				query.Set("continue", ancient(t, token))
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
	f := runWith(t, c, reconcile.Options{Concurrency: 2})
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
func compact(t *testing.T, env *testenv.Env) {
	t.Helper()
	socket := filepath.Join(filepath.Dir(env.Kubeconfig), "etcd.sock")
	etcd := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	call := func(path, body string) map[string]any {
		response, err := etcd.Post("http://etcd/v3/kv/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		answer := map[string]any{}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("etcd: %s: %v, %v", response.Status, err, answer)
		}
		return answer
	}
	header := call("range", `{"key":"AA=="}`)["header"].(map[string]any)
	call("compaction", fmt.Sprintf(`{"revision":%q}`, header["revision"]))
}

// ancient is the token with a revision that no server keeps.
func ancient(t *testing.T, token string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&fields); err != nil {
		t.Fatal(err)
	}
	fields["rv"] = 1
	raw, err = json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}
