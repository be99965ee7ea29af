#!/bin/sh
# Runs the shipped CronJob, our image and real memcached on a real node: kubelet,
# containerd, CNI and CoreDNS. The node runs on this machine, in its own namespaces.
# The test needs root, Debian 12 and cgroup v1, and fetches Go and Debian packages. It
# unpacks the packages into a cache and does not install them. So it starts no service
# and changes no file of the system. Everything ends with this process, even if the
# process is killed. The next run then removes what is left.
#
#   run.sh            run the test
#   run.sh --why-not  print why the test cannot run here, if it cannot; fetch the packages
set -eu
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/clusteredcache
packages="containerd runc containernetworking-plugins nftables memcached"
debian=$cache/debian-$(echo "$packages" | sha256sum | cut -c 1-12)
state=/var/tmp/clusteredcache-e2e
mountpoints="/var/lib/kubelet /tmp/hostpath_pv" # empty directories for the node's own file systems
group=clusteredcache-e2e

say() {
	echo "e2e: $*" >&2
}

# impossible prints why the test cannot run here. It prints nothing if the test can
# run.
impossible() {
	[ "$(id -u)" = 0 ] || { echo "it needs root"; return; }
	grep -q '^VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null || { echo "it needs Debian 12"; return; }
	for program in apt-get dpkg-deb unshare setpriv flock ip ldd openssl; do
		command -v "$program" >/dev/null || { echo "it needs $program"; return; }
	done
	for program in kubelet kube-proxy kube-scheduler; do
		[ -z "${KUBEBUILDER_ASSETS:-}" ] || [ -x "$KUBEBUILDER_ASSETS/$program" ] || { echo "KUBEBUILDER_ASSETS has no $program"; return; }
	done
	[ -d /sys/fs/cgroup/memory ] || { echo "it needs the hierarchies of cgroup v1"; return; }
	mkdir "/sys/fs/cgroup/memory/$group-$$" 2>/dev/null || { echo "it needs the right to create control groups"; return; }
	rmdir "/sys/fs/cgroup/memory/$group-$$"
	unshare --net --mount --pid --fork --propagation private true 2>/dev/null || { echo "it needs the right to create namespaces"; return; }
	lock
	part "$debian" fetch_packages || echo "it needs packages of Debian, which cannot be fetched"
}

# lock waits until no other run has the lock. All processes of a run have the lock, so
# the processes of a killed run have ended by then.
lock() {
	exec 9>"$state.lock"
	flock -n 9 || { say "waiting for another run, or for the end of a killed one" && flock -w 900 9; } ||
		{ say "another run holds $state.lock"; exit 1; }
}

# fetch_packages unpacks the Debian packages that a node needs into directory $1.
fetch_packages() {
	say "fetching $packages"
	mkdir -p "$1/archives/partial" && apt-get update -qq >&2 || return
	# shellcheck disable=SC2086
	apt-get install -qq --reinstall --download-only --no-install-recommends \
		-o APT::Sandbox::User=root -o Dir::Cache::archives="$1/archives" $packages >&2 || return
	for archive in "$1"/archives/*.deb; do
		dpkg-deb -x "$archive" "$1" || return
	done
	rm -r "$1/archives"
}

# build_coredns builds CoreDNS into directory $1.
build_coredns() {
	say "building CoreDNS, once: about 2 minutes"
	GOFLAGS= GOWORK=off CGO_ENABLED=0 go build -C testdata/e2e/coredns -buildvcs=false -ldflags "-s -w" -o "$1/" .
}

# part creates directory $1 with function $2, unless it exists.
part() {
	[ ! -d "$1" ] || return 0
	rm -rf "$1.tmp"
	mkdir -p "$1.tmp" && "$2" "$1.tmp" && mv "$1.tmp" "$1"
}

# remove_groups removes the control groups of an earlier run. A group can be removed
# only after its processes have ended, so remove_groups tries for 30 seconds.
remove_groups() {
	for try in $(seq 60); do
		find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} \; 2>/dev/null || true
		[ -n "$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$group")" ] || return 0
		sleep 0.5
	done
	say "control groups of an earlier run are in use: find /sys/fs/cgroup -path '*/$group*'"
	exit 1
}

# build_images builds the images of the node, as archives in $state/images.
build_images() {
	memcached=$debian/usr/bin/memcached
	libraries=$(echo "$debian"/usr/lib/*-linux-gnu)
	tool=$state/bin/tool
	mkdir "$state/images"
	image() {
		name=$1
		shift
		LD_LIBRARY_PATH=$libraries "$tool" image -o "$state/images/$(echo "$name" | tr '/:' '__').tar" -name "$name" "$@"
	}
	image clusteredcache.test/pause:1 -entrypoint "/tool pause" "$tool=/tool"
	image clusteredcache.test/tool:1 -entrypoint /tool "$tool=/tool"
	image clusteredcache.test/clusteredcache:1 -entrypoint /clusteredcache "$state/bin/clusteredcache=/clusteredcache"
	for tag in 1.6.18 1.6.18-next; do
		image "docker.io/library/memcached:$tag" -entrypoint /usr/bin/memcached "$memcached=/usr/bin/memcached"
	done
}

reason=$(impossible)
if [ "${1:-}" = --why-not ]; then
	echo "$reason"
	exit
fi
[ -z "$reason" ] || { say "cannot run here: $reason"; exit 1; }
lock

finish() {
	status=$?
	trap - EXIT HUP INT TERM
	[ "$status" = 0 ] || [ ! -d "$state/log" ] || { rm -rf "$state.log" && cp -R "$state/log" "$state.log" && say "logs: $state.log"; }
	remove_groups
	rm -rf "$state"
	# shellcheck disable=SC2086
	rmdir $mountpoints 2>/dev/null || true
	exit "$status"
}
remove_groups
rm -rf "$state"
# shellcheck disable=SC2086
mkdir -p "$state/bin" "$state/log" "$state/tmp" $mountpoints
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

assets=$(testdata/controlplane/build.sh)
coredns=$cache/coredns-$(cat testdata/e2e/coredns/* | sha256sum | cut -c 1-12)
part "$coredns" build_coredns

say "building the program and images"
export CGO_ENABLED=0
go build -buildvcs=false -trimpath -o "$state/bin/clusteredcache" ./cmd/clusteredcache
go build -buildvcs=false -o "$state/bin/tool" ./testdata/e2e/tool
ln -s clusteredcache "$state/bin/kubectl-clusteredcache"
build_images

# The test has only its own network, and is built before it enters that network.
export E2E_STATE="$state" E2E_ASSETS="$assets" E2E_DEBIAN="$debian" E2E_COREDNS="$coredns/coredns" E2E_GROUP="/$group" GOTMPDIR="$state/tmp"
isolated="setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private"
setpriv --pdeathsig KILL \
	go test -count=1 -v -failfast -timeout 25m -exec "$isolated ./node.sh" ./testdata/e2e
