package world

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile/internal/faults"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
)

// Config is a copy of what passes connect with.
func (w *World) Config() *rest.Config { return rest.CopyConfig(w.config) }

// Product is the client that the program makes; hook, if not nil, is called
// before each request with its number from 1.
func (w *World) Product(hook func(n int, r *http.Request)) client.Client {
	w.Helper()
	config := w.Config()
	if hook != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &hooked{next: next, hook: hook} })
	}
	return w.client(config)
}

func (w *World) client(config *rest.Config) client.Client {
	w.Helper()
	c, err := kube.NewClient(&kube.Target{Config: config}, nil)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

type hooked struct {
	next http.RoundTripper
	hook func(n int, r *http.Request)
	mu   sync.Mutex
	n    int
}

func (h *hooked) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.n++
	n := h.n
	h.mu.Unlock()
	h.hook(n, r)
	return h.next.RoundTrip(r)
}

// Between stands between the program and the API server. It returns the answer to
// a request, or calls send for the server's.
type Between func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)

// Standing is a transport with somebody between.
type Standing struct {
	Next http.RoundTripper
	Do   Between
}

// RoundTrip asks whoever stands between.
func (s *Standing) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.Do(r, func() (*http.Response, error) { return s.Next.RoundTrip(r) })
}

// Behind is the client that the program makes, behind somebody. Requests have
// four seconds.
func (w *World) Behind(do Between) client.Client {
	w.Helper()
	config := w.Config()
	config.Timeout = 4 * time.Second
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &Standing{next, do} })
	return w.client(config)
}

// Answer is what a server says that does not do what it was asked for.
func Answer(r *http.Request, code int, reason string, headers ...string) (*http.Response, error) {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s (a test's answer)","reason":%q,"code":%d}`, reason, reason, code)
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// IsWrite tells requests that change something.
func IsWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// Proxy starts a proxy to the API server, for programs.
func (w *World) Proxy(choose func(n int, r *http.Request) faults.Fault) *faults.Proxy {
	w.Helper()
	return faults.Start(w.T, w.Env.Config, choose)
}

// AsUser returns the same world, in which passes are made as a user.
func (w *World) AsUser(name string) *World {
	other := *w
	other.config = w.Config()
	other.config.Impersonate.UserName = name
	return &other
}

// User is whom passes are made as.
func (w *World) User() string { return w.config.Impersonate.UserName }

// As returns the same world, in which passes are made as a user of the test's own
// who has these rights in the whole cluster, and no others.
func (w *World) As(role *rbacv1.ClusterRole) *World {
	w.Helper()
	user := w.NS + "-" + role.Name
	if w.users[user] {
		return w.AsUser(user)
	}
	bound := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: role.Rules}
	w.CreateGlobal(bound)
	w.CreateGlobal(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef: roleRef(user), Subjects: []rbacv1.Subject{subject(user)}})
	other := w.AsUser(user)
	c := other.Product(nil)
	w.Eventually("the rights are in force", func() bool {
		return c.List(w.Context(), &v1.ClusteredCacheList{}) == nil
	})
	w.users[user] = true
	return other
}

// BindHere gives a user rights in the namespace, and returns the same world in
// which passes are made as that user.
func (w *World) BindHere(user string, rules []rbacv1.PolicyRule) *World {
	w.Helper()
	w.CreateGlobal(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules})
	w.Create(&rbacv1.RoleBinding{ObjectMeta: w.Meta(user), RoleRef: roleRef(user), Subjects: []rbacv1.Subject{subject(user)}})
	return w.AsUser(user)
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func subject(user string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}
}

// Reader may read what a pass reads.
func Reader() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "apps", "policy", v1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list"},
	}}}
}

// ShippedRole is the ClusterRole of deploy.
func (w *World) ShippedRole() *rbacv1.ClusterRole {
	w.Helper()
	raw, err := os.ReadFile(filepath.Join(testenv.Root(), "deploy", "rbac", "role.yaml"))
	if err != nil {
		w.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		w.Fatal(err)
	}
	return role
}
