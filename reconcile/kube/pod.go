package kube

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// inPod says whether we run in a pod that may talk to its API server.
func (s sources) inPod() bool {
	if s.getenv("KUBERNETES_SERVICE_HOST") == "" || s.getenv("KUBERNETES_SERVICE_PORT") == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(s.account, "token"))
	return err == nil && !info.IsDir()
}

// fromPod makes the pod's own settings a Target. They are put into the form of
// a kubeconfig, so that overrides mean the same as everywhere.
func (s sources) fromPod(o *clientcmd.ConfigOverrides) (*Target, error) {
	const name = "in-cluster"
	raw := clientcmdapi.NewConfig()
	cluster := clientcmdapi.NewCluster()
	cluster.Server = "https://" + net.JoinHostPort(s.getenv("KUBERNETES_SERVICE_HOST"), s.getenv("KUBERNETES_SERVICE_PORT"))
	if ca := filepath.Join(s.account, "ca.crt"); fileExists(ca) {
		cluster.CertificateAuthority = ca
	}
	user := clientcmdapi.NewAuthInfo()
	// By path: the kubelet renews the token while we run.
	user.TokenFile = filepath.Join(s.account, "token")
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = name, name
	raw.Clusters[name], raw.AuthInfos[name], raw.Contexts[name] = cluster, user, context

	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, o, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the pod's ServiceAccount cannot be used: %w", err)
	}
	namespace := "default"
	if b, err := os.ReadFile(filepath.Join(s.account, "namespace")); err == nil && len(b) > 0 {
		namespace = strings.TrimSpace(string(b))
	}
	return finish(config, o, Target{
		Identity:  subject(config.BearerToken),
		Namespace: namespace,
		InCluster: true,
	}), nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// subject is the name in a ServiceAccount token ("system:serviceaccount:shop:x"),
// or empty if the token is no JWT. The name is only shown to people, so the
// signature is the server's business.
func subject(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Subject
}

// identity says who asks: name is the user that the files give, flags may have
// put another in its place.
func identity(name string, o *clientcmd.ConfigOverrides, config *rest.Config) string {
	switch {
	case o.AuthInfo.Token != "":
		name = "--token"
		if s := subject(o.AuthInfo.Token); s != "" {
			name = s
		}
	case o.AuthInfo.Username != "":
		name = o.AuthInfo.Username
	case o.AuthInfo.ClientCertificate != "":
		name = "--client-certificate"
	}
	if as := config.Impersonate.UserName; as != "" {
		if name == "" {
			return as
		}
		return as + ", impersonated by " + name
	}
	return name
}
