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

// inPod reports whether we run in a pod that may talk to its API server.
func (s sources) inPod() bool {
	if s.getenv("KUBERNETES_SERVICE_HOST") == "" || s.getenv("KUBERNETES_SERVICE_PORT") == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(s.account, "token"))
	return err == nil && !info.IsDir()
}

// fromPod makes a Target of the pod's own settings. It uses the form of a
// kubeconfig, so that overrides have the same meaning as for a kubeconfig.
func (s sources) fromPod(o *clientcmd.ConfigOverrides) (*Target, error) {
	const name = "in-cluster"
	raw := clientcmdapi.NewConfig()
	cluster := clientcmdapi.NewCluster()
	cluster.Server = "https://" + net.JoinHostPort(s.getenv("KUBERNETES_SERVICE_HOST"), s.getenv("KUBERNETES_SERVICE_PORT"))
	if ca := filepath.Join(s.account, "ca.crt"); fileExists(ca) {
		cluster.CertificateAuthority = ca
	}
	user := clientcmdapi.NewAuthInfo()
	// The file is read again later, because the kubelet renews the token while we
	// run.
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

// subject returns the name in a ServiceAccount token, such as
// "system:serviceaccount:shop:x". It returns "" if the token is not a JWT. It does
// not check the signature, because the name is only shown to people.
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

// identity describes who sends the requests. The argument name is the user in the
// files; flags may replace it.
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
