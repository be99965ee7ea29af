package kube

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// transport is what every request goes through.
type transport struct {
	next    http.RoundTripper
	counter *Counter
	clock   *Clock
	// prefix of the paths of the API, without a slash at its end.
	prefix string
}

// RoundTrip counts r, sends it, and hears the server's time.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.counter.add(requestName(r, t.prefix))
	sent := t.clock.machine()
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		t.clock.hear(sent, answer)
	}
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		tellAtOnce(answer)
	}
	return answer, err
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// tellAtOnce changes a refusal that asks to wait, so that client-go does not: it
// would for ten times, for all that is left of the request's time, and for a
// write also when the run ends. It becomes the API's own error, with the time to
// wait. Who gets it waits, or does not.
func tellAtOnce(refusal *http.Response) {
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
