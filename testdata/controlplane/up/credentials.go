package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Files in the state directory, which is the working directory of the children.
const (
	certDir            = "certs"
	servingCertificate = certDir + "/apiserver.crt" // the API server makes it; it is its own authority
	serviceAccountKey  = "serviceaccount.key"
	tokenFile          = "tokens.csv"
	kubeconfigFile     = "kubeconfig"
	contextName        = "controlplane"
)

// writeCredentials writes the key that signs service account tokens and the
// token of the administrator, and returns the token.
func writeCredentials(dir string) (token string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("generate the service account key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("encode the service account key: %w", err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, serviceAccountKey), block, 0o600); err != nil {
		return "", fmt.Errorf("write the service account key: %w", err)
	}
	token = rand.Text()
	line := token + ",admin,admin,system:masters\n"
	if err := os.WriteFile(filepath.Join(dir, tokenFile), []byte(line), 0o600); err != nil {
		return "", fmt.Errorf("write the token file: %w", err)
	}
	return token, nil
}

func writeKubeconfig(dir, token string, port int) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:               fmt.Sprintf("https://127.0.0.1:%d", port),
		CertificateAuthority: filepath.Join(dir, servingCertificate),
	}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: "admin"}
	config.CurrentContext = contextName
	if err := clientcmd.WriteToFile(*config, filepath.Join(dir, kubeconfigFile)); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}
