package stories_test

import (
	"example.com/clusteredcache/reconcile/internal/world"

	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/reconcile"
	"example.com/clusteredcache/reconcile/kube"
	"example.com/clusteredcache/reconcile/model"
)

// The token file is written anew while a run waits, and the API server does not
// take the old token any more: the run goes on with the new one. A
// pod's own token comes from a file in the same way.
func TestTokenFileIsWrittenAnew(t *testing.T) {
	t.Parallel()
	w := world.Shared(t)
	account := &corev1.ServiceAccount{ObjectMeta: w.Meta("pass")}
	w.Create(account)
	w.CreateGlobal(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.NS},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.NS, Name: "pass"}}})
	file := filepath.Join(t.TempDir(), "token")
	old := writeToken(w, account, "old", file)

	target, err := kube.Load(&clientcmd.ConfigOverrides{}, kubeconfigOf(w, file))
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	target.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &world.Standing{Next: next, Do: func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
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
	cache := w.Cache(world.Crashing)
	type end struct {
		fleet world.Fleet
		err   error
	}
	ended := make(chan end, 1)
	go func() {
		f, err := w.Try(c, reconcile.Options{Wait: true, Timeout: 2 * time.Minute})
		ended <- end{f, err}
	}()
	w.Eventually("the first pass is done", func() bool {
		return w.Stored().Status.ObservedGeneration == cache.Generation
	})
	writeToken(w, account, "new", file)
	w.Delete(old)
	// The API server forgets within ten seconds that it took the token before.
	w.Eventually("the old token is refused", func() bool { return refused.Load() > 0 || len(ended) > 0 })
	w.Edit(`spec: {version: "1"}`)
	e := <-ended
	if e.err != nil {
		t.Fatal(e.err)
	}
	e.fleet.Wants(model.Settled, v1.ReasonReady)
	if n := refused.Load(); n != 1 {
		t.Errorf("%d requests were refused, want one", n)
	}
}

// writeToken makes a token that holds for as long as the Secret which it is bound
// to exists, and writes it to a file.
func writeToken(w *world.World, account *corev1.ServiceAccount, name, file string) *corev1.Secret {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: w.Meta(name)}
	w.Create(secret)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: secret.UID},
	}}
	if err := w.Env.Client.SubResource("token").Create(w.Context(), account, request); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(request.Status.Token), 0o600); err != nil {
		w.Fatal(err)
	}
	return secret
}

// kubeconfigOf writes a kubeconfig for whoever the token in a file is of.
func kubeconfigOf(w *world.World, tokenFile string) string {
	w.Helper()
	config, err := clientcmd.LoadFromFile(w.Env.Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{TokenFile: tokenFile}
	}
	path := filepath.Join(w.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.Fatal(err)
	}
	return path
}
