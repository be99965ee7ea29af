#!/bin/sh
# Starts a cluster of one node and runs the arguments against it. It is the first
# process in the namespaces that run.sh creates. KUBECONFIG is the administrator's.
set -eu

bin=$E2E_ASSETS
run=/run/e2e
log=$E2E_STATE/log
address=10.250.0.1
PATH=$E2E_STATE/bin:$bin:$E2E_DEBIAN/usr/sbin:$E2E_DEBIAN/usr/bin:$PATH
KUBECONFIG=$E2E_STATE/kubeconfig
export PATH KUBECONFIG

say() {
	echo "e2e: $*" >&2
}

# start runs a program in the background and writes its output to a log.
start() {
	name=$1
	shift
	"$@" >"$log/$name.log" 2>&1 &
}

# wait_for runs a command until it succeeds, for at most three minutes.
wait_for() {
	what=$1
	shift
	for try in $(seq 900); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.2
	done
	say "$what is not ready after three minutes; the end of the logs:"
	tail -n 5 "$log"/*.log >&2
	exit 1
}

private_mounts() {
	mount --make-rshared /
	# The controller manager creates volumes in the last of these directories.
	for directory in /run /var/lib/kubelet /var/log /tmp/hostpath_pv; do
		mount -t tmpfs -o mode=755 tmpfs "$directory"
	done
	mkdir "$run"
	# The kubelet requires these settings, but they belong to the whole machine. So it
	# gets files with the required values instead.
	for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1; do
		file=$run/$(basename "${setting%=*}")
		echo "${setting#*=}" >"$file"
		mount --bind "$file" "/proc/sys/${setting%=*}"
	done
}

# network sets up the network of the node. The test uses the cluster's DNS too.
network() {
	printf 'nameserver %s\nsearch cluster.local\noptions ndots:5\n' "$address" >"$run/resolv.conf"
	mount --bind "$run/resolv.conf" /etc/resolv.conf
	ip link set lo up
	# This default route leads nowhere. But without a default route, the addresses of
	# Services could not be reached.
	ip link add uplink type veth peer name nowhere
	ip link set uplink up
	ip link set nowhere up
	ip addr add "$address/24" dev uplink
	ip route add default via 10.250.0.254 dev uplink
	mkdir -p "$run/cni"
	cat >"$run/cni/10-e2e.conflist" <<-END
		{"cniVersion": "1.0.0", "name": "e2e", "plugins": [{
		  "type": "bridge", "bridge": "e2e0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
		  "ipam": {"type": "host-local", "dataDir": "$run/ipam",
		    "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	END
}

containers() {
	cat >"$run/containerd.toml" <<-END
		version = 2
		root = "$E2E_STATE/containerd"
		state = "$run/containerd"
		disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
		[grpc]
		  address = "$run/containerd.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "clusteredcache.test/pause:1"
		  tolerate_missing_hugetlb_controller = true
		  disable_apparmor = true
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "$E2E_DEBIAN/usr/lib/cni"
		    conf_dir = "$run/cni"
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		      BinaryName = "$E2E_DEBIAN/usr/sbin/runc"
		      SystemdCgroup = false
	END
	start containerd containerd --config "$run/containerd.toml"
	wait_for containerd ctr --address "$run/containerd.sock" version
	for archive in "$E2E_STATE"/images/*.tar; do
		ctr --address "$run/containerd.sock" --namespace k8s.io images import "$archive" >"$log/import.log" 2>&1
	done
}

control_plane() {
	pki=$run/pki
	mkdir "$pki"
	openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
	echo "administrator,administrator,administrator,system:masters" >"$pki/tokens.csv"
	cat >"$KUBECONFIG" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: e2e, cluster: {server: "https://localhost:6443", certificate-authority: "$pki/apiserver.crt"}}]
		users: [{name: administrator, user: {token: administrator}}]
		contexts: [{name: e2e, context: {cluster: e2e, user: administrator}}]
		current-context: e2e
	END
	cat >"$run/audit.yaml" <<-END
		apiVersion: audit.k8s.io/v1
		kind: Policy
		omitStages: [RequestReceived]
		rules:
		- level: Metadata
		  users: ["system:serviceaccount:clusteredcache-system:clusteredcache"]
		- level: None
	END
	start etcd etcd --data-dir "$E2E_STATE/etcd" --unsafe-no-fsync --log-level warn
	# As on OpenShift, this API server checks rights on finalizers.
	start apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --cert-dir "$pki" --secure-port 6443 \
		--advertise-address "$address" --endpoint-reconciler-type lease --allow-privileged --profiling=false \
		--service-account-issuer https://kubernetes.default.svc \
		--service-account-key-file "$pki/sa.key" --service-account-signing-key-file "$pki/sa.key" \
		--token-auth-file "$pki/tokens.csv" --authorization-mode Node,RBAC --service-cluster-ip-range 10.96.0.0/16 \
		--kubelet-preferred-address-types InternalIP \
		--enable-admission-plugins OwnerReferencesPermissionEnforcement \
		--audit-policy-file "$run/audit.yaml" --audit-log-path "$E2E_STATE/audit.log"
	wait_for "the API server" kubectl get --raw /readyz
	start controller-manager kube-controller-manager --kubeconfig "$KUBECONFIG" --use-service-account-credentials \
		--service-account-private-key-file "$pki/sa.key" --root-ca-file "$pki/apiserver.crt" --cert-dir "$run/controller-manager" \
		--leader-elect=false --kube-api-qps=500 --kube-api-burst=1000 --enable-hostpath-provisioner
	start scheduler kube-scheduler --kubeconfig "$KUBECONFIG" --cert-dir "$run/scheduler" --leader-elect=false
	wait_for "the controller manager" kubectl get serviceaccount default
}

node() {
	for hierarchy in /sys/fs/cgroup/*/; do
		mkdir -p "$hierarchy$E2E_GROUP" 2>/dev/null || true
	done
	for file in cpus mems; do
		cat "/sys/fs/cgroup/cpuset/cpuset.$file" >"/sys/fs/cgroup/cpuset$E2E_GROUP/cpuset.$file"
	done
	cat >"$run/kubelet.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		failCgroupV1: false
		cgroupDriver: cgroupfs
		cgroupRoot: $E2E_GROUP
		enforceNodeAllocatable: []
		protectKernelDefaults: true
		makeIPTablesUtilChains: false
		containerRuntimeEndpoint: unix://$run/containerd.sock
		failSwapOn: false
		resolvConf: ""
		clusterDNS: [$address]
		clusterDomain: cluster.local
		evictionHard: {memory.available: 50Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
		imageGCHighThresholdPercent: 100
		nodeStatusUpdateFrequency: 5s
	END
	start kubelet kubelet --config "$run/kubelet.yaml" --kubeconfig "$KUBECONFIG" --cert-dir "$run/kubelet" \
		--hostname-override node --node-ip "$address"
	wait_for "the node" kubectl wait --for condition=Ready node/node --timeout 1s
	cat >"$run/Corefile" <<-END
		.:53 {
		  ready 127.0.0.1:8181
		  errors
		  kubernetes cluster.local {
		    kubeconfig $KUBECONFIG
		  }
		}
	END
	start coredns "$E2E_COREDNS" -conf "$run/Corefile"
	# kube-proxy runs nft, which needs the libraries of the packages. No other program
	# gets them.
	start kube-proxy env LD_LIBRARY_PATH="$(echo "$E2E_DEBIAN"/usr/lib/*-linux-gnu)" \
		kube-proxy --kubeconfig "$KUBECONFIG" --hostname-override node --proxy-mode nftables --cluster-cidr 10.244.0.0/24 \
		--conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
	wait_for kube-proxy kubectl get --raw "/api/v1/nodes/http:node:10256/proxy/healthz"
}

say "starting a cluster of one node"
private_mounts
network
containers
control_plane
node
say "running the test"
"$@"
