package kube

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	clienttransport "k8s.io/client-go/transport"
)

// renewToken makes config read its token file again as soon as the server refuses
// the token. The refused request is then sent again with the new token. Client-go
// alone reads the file once a minute, so a pass could fail although the file
// already holds a valid token.
func renewToken(config *rest.Config) error {
	if config.BearerTokenFile == "" {
		return nil
	}
	file := clienttransport.NewCachedFileTokenSource(config.BearerTokenFile)
	otherwise := strings.TrimSpace(config.BearerToken)
	if _, err := file.Token(); err != nil && otherwise == "" {
		return err
	}
	config.BearerToken, config.BearerTokenFile = "", ""
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &renewing{next, file, otherwise} })
	return nil
}

// renewing adds the token of a file to requests.
type renewing struct {
	next http.RoundTripper
	file clienttransport.ResettableTokenSource
	// otherwise is the token to use while the file has none.
	otherwise string
}

// RoundTrip sends r. If its token was refused and the file has another, RoundTrip
// sends r again.
func (t *renewing) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, token := time.Now(), t.token()
	answer, err := t.next.RoundTrip(withToken(r, token))
	if err != nil || answer.StatusCode != http.StatusUnauthorized || r.Body != nil && r.GetBody == nil {
		return answer, err
	}
	t.file.ResetTokenOlderThan(sent)
	other := t.token()
	if other == token {
		return answer, nil
	}
	again := withToken(r, other)
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return answer, nil
		}
	}
	_ = answer.Body.Close()
	return t.next.RoundTrip(again)
}

// token returns the token of the file, or the one from the configuration.
func (t *renewing) token() string {
	if token, err := t.file.Token(); err == nil {
		return token.AccessToken
	}
	return t.otherwise
}

// withToken returns a copy of r with the token.
func withToken(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// WrappedRoundTripper gives client-go access to the transport below.
func (t *renewing) WrappedRoundTripper() http.RoundTripper { return t.next }
