package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/report"
)

// A refusal of 1 MiB, in which no word is like another, is a failure like any
// other: status and Events have its beginning, and a report for people does not
// grow with it.
func TestRefusalOfAMebibyte(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	w.Cache()
	var words strings.Builder
	for i := 0; words.Len() < 1<<20; i++ {
		fmt.Fprintf(&words, "no-%d ", i)
	}
	c := w.Behind(func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/statefulsets/cache") {
			return world.Answer(r, http.StatusForbidden, words.String())
		}
		return send()
	})
	f := w.Run(c, reconcile.Options{Events: true})
	f.Wants(model.NotDone, v1.ReasonApplyRejected)
	for _, condition := range w.Stored().Status.Conditions {
		if n := len(condition.Message); n > 1024 {
			t.Errorf("%s: %d bytes", condition.Type, n)
		}
	}
	if n := world.Count(w.Events(), "Warning "); n == 0 {
		t.Error("no Event tells the refusal")
	}
	var markdown bytes.Buffer
	if err := report.Markdown(&markdown, f.Fleet, report.MarkdownOptions{}); err != nil || markdown.Len() > 60_000 {
		t.Errorf("markdown of %d bytes, %v", markdown.Len(), err)
	}
}

// 1,500 caches with 100 KiB in an annotation each, more than the process may
// have by far, go through 128 MiB. With 5,000 it is the same, and takes longer.
func TestAHeavyFleetInLittleMemory(t *testing.T) {
	t.Parallel()
	const caches, limit = 1500, 128 << 20
	fleet := newCopies(world.Shared(t), caches)
	fleet.padding = strings.Repeat("x", 100<<10)
	server := httptest.NewServer(fleet)
	defer server.Close()
	run := exec.Command(world.Program(t), "reconcile", "-A", "--server", server.URL)
	run.Env = []string{"HOME=" + t.TempDir(), "GOMEMLIMIT=100MiB"}
	start := time.Now()
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("%d settled", caches)) || len(fleet.wrong) > 0 {
		t.Fatalf("%v, requests %v\n%s", err, fleet.wrong, out)
	}
	// In bytes on macOS, in KiB elsewhere.
	resident := run.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS != "darwin" {
		resident *= 1024
	}
	t.Logf("%d MiB resident at most, %s", resident>>20, time.Since(start).Round(time.Second))
	if resident > limit {
		t.Errorf("%d bytes resident, %d allowed", resident, limit)
	}
}

// A run leaves nothing behind in its process, however it ends.
func TestNoGoroutineIsLeft(t *testing.T) {
	w := world.Shared(t)
	w.Cache()
	w.Settle()
	for name, refuse := range map[string]bool{"complete": false, "cut short": true} {
		transport := &http.Transport{}
		config := w.Config()
		tls, err := rest.TLSConfigFor(config)
		if err != nil {
			t.Fatal(err)
		}
		transport.TLSClientConfig = tls
		config.TLSClientConfig, config.Transport = rest.TLSClientConfig{}, transport
		if refuse {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return &world.Standing{Next: next, Do: func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
					if strings.HasSuffix(r.URL.Path, "/services") {
						return world.Answer(r, http.StatusInternalServerError, "InternalError")
					}
					return send()
				}}
			})
		}
		c, err := kube.NewClient(&kube.Target{Config: config}, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := ourGoroutines()
		f, err := w.Try(client.NewDryRunClient(c), reconcile.Options{Concurrency: 4, Wait: true, Timeout: time.Second})
		if (err != nil) != refuse {
			t.Errorf("%s: %v, %+v", name, err, f)
		}
		if after := ourGoroutines(); after > before {
			t.Errorf("%s: %d goroutines of ours before, %d after:\n%s", name, before, after, stacks())
		}
		transport.CloseIdleConnections()
	}
}

// ourGoroutines counts those with a function of the product on their stack that
// is no test's.
func ourGoroutines() int {
	n := 0
	for _, g := range strings.Split(stacks(), "\n\n") {
		if strings.Contains(g, "example.com/clusteredcache/reconcile.") || strings.Contains(g, "example.com/clusteredcache/reconcile/observe.") || strings.Contains(g, "example.com/clusteredcache/reconcile/apply.") {
			n++
		}
	}
	return n
}

func stacks() string {
	buffer := make([]byte, 4<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}
