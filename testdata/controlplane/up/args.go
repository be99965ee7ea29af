package main

import "strconv"

const (
	etcdDir    = "etcd"
	etcdSocket = "etcd.sock"
	// Relative to the state directory, because socket paths may not be long. A
	// socket rather than a port cannot clash, and nobody else on the machine gets
	// at the data.
	etcdURL = "unix://" + etcdSocket
)

func etcdArgs() []string {
	return []string{
		"--data-dir=" + etcdDir,
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=http://127.0.0.1:0", // has no peers, but insists on listening
		"--unsafe-no-fsync",                     // nothing in here must survive a power cut
		"--log-level=warn",
	}
}

// apiServerArgs adds to the default admission plugins. Those include
// ValidatingAdmissionPolicy and MutatingAdmissionPolicy.
func apiServerArgs(port int, o options) []string {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1", // else it asks for a default route
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + certDir,
		"--token-auth-file=" + tokenFile,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + serviceAccountKey,
		"--service-account-signing-key-file=" + serviceAccountKey,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--max-requests-inflight=1000",
		"--max-mutating-requests-inflight=500",
		"--profiling=false",
	}
	if !o.controllerManager {
		// Nobody makes them, and without them the plugin lets no pod through.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if o.admissionPlugins != "" {
		args = append(args, "--enable-admission-plugins="+o.admissionPlugins)
	}
	if o.authorizer == "" {
		return append(args, "--authorization-mode=RBAC")
	}
	return append(args, "--authorization-mode=Webhook,RBAC",
		"--authorization-webhook-config-file="+o.authorizer, "--authorization-webhook-version=v1")
}

func controllerManagerArgs(controllers string) []string {
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--controllers=" + controllers,
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + serviceAccountKey,
		"--root-ca-file=" + servingCertificate,
		"--secure-port=0",
		"--leader-elect=false",
		"--profiling=false",
		"--horizontal-pod-autoscaler-sync-period=1s",
		// The default rate alone costs 5 s at the start.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + kubeconfigFile,
		"--secure-port=0",
		"--leader-elect=false",
	}
}
