package kube

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	v1 "example.com/clusteredcache/api/v1"
)

// A token file wins over a token, which stands in for it as long as the file
// holds none: as with kubectl.
func TestTokenFileAndToken(t *testing.T) {
	for _, tc := range []struct {
		name, file, token string
		// sent are the tokens of two reads, which are refused. While the second is,
		// the file becomes then.
		then string
		sent []string
	}{
		{"file alone", "file", "", "file", []string{"file", "file"}},
		{"file and token", "file\n", "token", "file", []string{"file", "file"}},
		{"empty file", "", "token", "", []string{"token", "token"}},
		{"file comes later", "", "token", "file", []string{"token", "token", "file"}},
		{"file becomes empty", "same\n", "same\n", "", []string{"same", "same"}},
		{"another token", "old", "old", "new", []string{"old", "old", "new"}},
		{"no token at all", "", "", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "token")
			write := func(content string) {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var sent []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if sent = append(sent, r.Header.Get("Authorization")[len("Bearer "):]); len(sent) == 2 {
					write(tc.then)
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer s.Close()
			write(tc.file)
			c, err := NewClient(&Target{Config: &rest.Config{Host: s.URL, BearerToken: tc.token, BearerTokenFile: path}}, nil)
			if (err != nil) != (tc.sent == nil) {
				t.Fatal(err)
			}
			for range 2 {
				if err == nil {
					_ = c.List(t.Context(), &v1.ClusteredCacheList{})
				}
			}
			if !slices.Equal(sent, tc.sent) {
				t.Errorf("sent %q, want %q", sent, tc.sent)
			}
		})
	}
}
