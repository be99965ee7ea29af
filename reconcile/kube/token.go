package kube

import (
	"net/http"

	"k8s.io/client-go/rest"
	clienttransport "k8s.io/client-go/transport"
)

// renewToken makes config read its token file again at once when the token is
// not accepted any more, and send the refused request again with the new one.
// By itself client-go reads the file once a minute, so that a pass would end
// with the old token beside a file that holds a good one.
func renewToken(config *rest.Config) {
	if config.BearerTokenFile == "" {
		return
	}
	source := clienttransport.NewCachedFileTokenSource(config.BearerTokenFile)
	config.BearerToken, config.BearerTokenFile = "", ""
	config.Wrap(clienttransport.ResettableTokenSourceWrapTransport(source))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &renewing{next, source} })
}

// renewing stands outside of the transport that reads the token.
type renewing struct {
	next  http.RoundTripper
	token clienttransport.ResettableTokenSource
}

// RoundTrip sends r, and again if its token was refused and there is another.
func (t *renewing) RoundTrip(r *http.Request) (*http.Response, error) {
	before, _ := t.token.Token()
	answer, err := t.next.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized || before == nil || r.Body != nil && r.GetBody == nil {
		return answer, err
	}
	after, err := t.token.Token()
	if err != nil || after.AccessToken == before.AccessToken {
		return answer, nil
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return answer, nil
		}
	}
	_ = answer.Body.Close()
	return t.next.RoundTrip(again)
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t *renewing) WrappedRoundTripper() http.RoundTripper { return t.next }
