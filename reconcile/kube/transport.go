package kube

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

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
		tellAtOnce(answer, r)
	}
	return answer, err
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// tellAtOnce changes a refusal that asks to wait, so that client-go does not:
// that of a write, since a write is not given up when a run ends, but one that
// was refused can be; and that of a read which has less time than that, or it
// would look like a server that does not answer. It becomes the API's own
// error, with the time to wait. Who gets it waits, or does not.
func tellAtOnce(refusal *http.Response, r *http.Request) {
	seconds, err := strconv.Atoi(refusal.Header.Get("Retry-After"))
	end, bounded := r.Context().Deadline()
	if err != nil || r.Method == http.MethodGet && (!bounded || time.Until(end) > time.Duration(seconds)*time.Second) {
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
