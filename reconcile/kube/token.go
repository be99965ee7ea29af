package kube

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	clienttransport "k8s.io/client-go/transport"
)

// renewToken makes config read its token file again at once when the token is
// not accepted any more, and send the refused request again with the new one.
// By itself client-go reads the file once a minute, so that a pass would end
// with the old token beside a file that holds a good one.
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

// renewing gives requests the token of a file.
type renewing struct {
	next http.RoundTripper
	file clienttransport.ResettableTokenSource
	// otherwise is the token while there is none in the file.
	otherwise string
}

// RoundTrip sends r, and again if its token was refused and there is another.
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

func (t *renewing) token() string {
	if token, err := t.file.Token(); err == nil {
		return token.AccessToken
	}
	return t.otherwise
}

func withToken(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t *renewing) WrappedRoundTripper() http.RoundTripper { return t.next }
