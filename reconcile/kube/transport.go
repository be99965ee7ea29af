package kube

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// transport counts every request and reads the time from its answer.
type transport struct {
	next    http.RoundTripper
	counter *Counter
	clock   *Clock
	// prefix is the beginning of every API path, without a slash at its end.
	prefix string
}

// RoundTrip counts r, sends it, and sets the clock by the answer.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.counter.add(requestName(r, t.prefix))
	sent := t.clock.machine()
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		t.clock.hear(sent, answer)
	}
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		surfaceThrottling(answer)
	}
	return answer, err
}

// WrappedRoundTripper gives client-go access to the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// surfaceThrottling turns a 429 with Retry-After into an API error, so that our
// caller decides whether to wait. Client-go alone would retry it up to ten times,
// as long as the request's timeout allows. It would even continue to retry a write
// after the run was ended.
func surfaceThrottling(refusal *http.Response) {
	seconds, err := strconv.Atoi(refusal.Header.Get("Retry-After"))
	if err != nil {
		return
	}
	status := apierrors.NewTooManyRequests("the server has received too many requests and asks to wait for "+strconv.Itoa(seconds)+" s", seconds).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(status)
	if err != nil {
		return
	}
	_ = refusal.Body.Close()
	refusal.Body, refusal.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	refusal.Header = http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
}
