package stories_test

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/internal/testenv"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
	"example.com/clusteredcache/reconcile/observe"
)

// The token file is written anew while a run waits, and the API server does not
// take the old token any more: the run goes on with the new one. A
// pod's own token comes from a file in the same way.
func TestTokenFileIsWrittenAnew(t *testing.T) {
	ns := env.Namespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: meta(ns, "pass")}
	mustCreate(t, account)
	mustCreate(t, &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", ns),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "pass"}}})
	file := filepath.Join(t.TempDir(), "token")
	old := writeToken(t, account, "old", file)

	target, err := kube.Load(&clientcmd.ConfigOverrides{}, kubeconfigOf(t, file))
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	target.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &standing{next, func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			answer, err := send()
			if err == nil && answer.StatusCode == http.StatusUnauthorized {
				refused.Add(1)
			}
			return answer, err
		}}
	})
	c, err := kube.NewClient(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	cache := create(t, ns, "cache", crashing)
	type end struct {
		fleet model.Fleet
		err   error
	}
	ended := make(chan end, 1)
	go func() {
		f, err := reconcile.Run(t.Context(), c, reconcile.Options{Scope: observe.Scope{Namespaces: []string{ns}}, Wait: true, Timeout: 2 * time.Minute})
		ended <- end{f, err}
	}()
	testenv.Eventually(t, "the first pass is done", func() bool {
		return get(t, ns, "cache", &v1.ClusteredCache{}).Status.ObservedGeneration == cache.Generation
	})
	writeToken(t, account, "new", file)
	if err := env.Client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	// The API server forgets within ten seconds that it took the token before.
	testenv.Eventually(t, "the old token is refused", func() bool { return refused.Load() > 0 || len(ended) > 0 })
	update(t, cache, func(c *v1.ClusteredCache) { c.Spec.Version = "1" })
	e := <-ended
	if e.err != nil {
		t.Fatal(e.err)
	}
	wantVerdict(t, e.fleet, "cache", model.Settled, v1.ReasonReady)
	if n := refused.Load(); n != 1 {
		t.Errorf("%d requests were refused, want one", n)
	}
}

// writeToken makes a token that holds for as long as the Secret which it is bound
// to exists, and writes it to a file.
func writeToken(t *testing.T, account *corev1.ServiceAccount, name, file string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: meta(account.Namespace, name)}
	mustCreate(t, secret)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: secret.UID},
	}}
	if err := env.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(request.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	return secret
}

// kubeconfigOf writes a kubeconfig for whoever the token in a file is of.
func kubeconfigOf(t *testing.T, tokenFile string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{TokenFile: tokenFile}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
