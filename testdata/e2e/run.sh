#!/bin/sh
# Runs the shipped CronJob, our image and real memcached on a real node: kubelet,
# containerd, CNI and CoreDNS, on this machine, in namespaces of their own. Needs
# root, Debian and cgroup v1; Go and Debian packages are fetched. The packages are
# unpacked into a cache, not installed: no service is started, no file of the
# system changes. Everything ends with this process, also when it is killed.
set -eu
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/clusteredcache
packages="containerd runc containernetworking-plugins nftables memcached"
state=/var/tmp/clusteredcache-e2e
mountpoints="/var/lib/kubelet /tmp/hostpath_pv" # empty, for file systems of the node's own
group=clusteredcache-e2e

say() {
	echo "e2e: $*" >&2
}

# impossible prints why the test cannot run here; nothing if it can.
impossible() {
	[ "$(id -u)" = 0 ] || { echo "it needs root"; return; }
	for program in apt-get dpkg-deb unshare setpriv flock ip ldd; do
		command -v "$program" >/dev/null || { echo "it needs $program"; return; }
	done
	[ -d /sys/fs/cgroup/memory ] || { echo "it needs the hierarchies of cgroup v1"; return; }
	unshare --net --mount --pid --fork --propagation private true 2>/dev/null || echo "it may not make namespaces"
}

# fetch_packages unpacks what a node needs of Debian into directory $1.
fetch_packages() {
	say "fetching $packages"
	mkdir -p "$1/archives/partial"
	apt-get update -qq
	# shellcheck disable=SC2086
	apt-get install -qq --reinstall --download-only --no-install-recommends \
		-o APT::Sandbox::User=root -o Dir::Cache::archives="$1/archives" $packages >/dev/null
	for archive in "$1"/archives/*.deb; do
		dpkg-deb -x "$archive" "$1"
	done
	rm -r "$1/archives"
}

# build_coredns builds CoreDNS into directory $1.
build_coredns() {
	say "building CoreDNS, once: about 2 minutes"
	GOFLAGS= GOWORK=off CGO_ENABLED=0 go build -C testdata/e2e/coredns -buildvcs=false -ldflags "-s -w" -o "$1/" .
}

# part makes a directory with function $2, unless it is there.
part() {
	[ ! -d "$1" ] || return 0
	rm -rf "$1.tmp"
	mkdir -p "$1.tmp"
	"$2" "$1.tmp"
	mv "$1.tmp" "$1"
}

# remove_groups removes the control groups of an earlier run. They outlive the
# processes in them, for which there may still be some time to wait.
remove_groups() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} \; 2>/dev/null || true
		[ -n "$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$group")" ] || return 0
		sleep 0.5
	done
	say "control groups of an earlier run are in use: find /sys/fs/cgroup -path '*/$group*'"
	exit 1
}

# build_images makes the images that the node gets, as archives in $state/images.
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
[ -z "$reason" ] || { say "cannot run here: $reason"; exit 1; }

mkdir -p "$cache"
exec 9>"$state.lock"
flock -w 60 9 || { say "another run holds $state.lock"; exit 1; }
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
mkdir -p "$state/bin" "$state/log" $mountpoints
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

assets=$(testdata/controlplane/build.sh)
coredns=$cache/coredns-$(cat testdata/e2e/coredns/* | sha256sum | cut -c 1-12)
debian=$cache/debian-$(echo "$packages" "$(cat /etc/debian_version)" | sha256sum | cut -c 1-12)
part "$coredns" build_coredns
part "$debian" fetch_packages

say "building the program, its test and images"
export CGO_ENABLED=0
go build -buildvcs=false -trimpath -o "$state/bin/clusteredcache" ./cmd/clusteredcache
go build -buildvcs=false -o "$state/bin/tool" ./testdata/e2e/tool
go test -c -o "$state/bin/e2e.test" ./testdata/e2e
ln -s clusteredcache "$state/bin/kubectl-clusteredcache"
build_images

# Nothing below has a network but its own.
export E2E_STATE="$state" E2E_ASSETS="$assets" E2E_DEBIAN="$debian" E2E_COREDNS="$coredns/coredns" E2E_GROUP="/$group"
setpriv --pdeathsig KILL \
	unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
	testdata/e2e/node.sh "$state/bin/e2e.test" -test.v -test.failfast -test.timeout 15m
