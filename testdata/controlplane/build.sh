#!/bin/sh
# Builds the programs of the control plane, once, into the user's cache, and
# prints the directory that holds them: up, etcd, kube-apiserver,
# kube-controller-manager, kubectl and others. Messages go to standard error.
#
# With KUBEBUILDER_ASSETS the Kubernetes programs are taken from there, and only
# up is built.
set -eu
cd "$(dirname "$0")"

# Settings of the caller (-race, another platform, a workspace) would compile all
# of Kubernetes once more.
export CGO_ENABLED=0 GOFLAGS= GOWORK=off GOOS= GOARCH=

version=$(sed -n 's/.*k8s.io\/kubernetes v//p' go.mod)
stamp=k8s.io/component-base/version
major=${version%%.*}
minor=${version#*.}
ldflags="-s -w -X $stamp.gitVersion=v$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=${minor%%.*}"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/clusteredcache
lock=$cache/build.lock
tmp=

say() {
	echo "controlplane: $*" >&2
}

fail() {
	say "$*"
	exit 1
}

# short_hash prints a hash of standard input.
short_hash() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum
	else
		shasum -a 256
	fi | cut -c 1-12
}

cleanup() {
	[ -z "$tmp" ] || rm -rf "$tmp"
	[ "$(readlink "$lock" 2>/dev/null)" != $$ ] || rm -f "$lock"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

# acquire_lock saves building the same thing twice at the same time. Nothing
# depends on it: see publish. The lock is a link that names the process id of its
# owner, and is made in one step.
acquire_lock() {
	waiting=
	until ln -s $$ "$lock" 2>/dev/null; do
		owner=$(readlink "$lock" 2>/dev/null || true)
		if [ -z "$owner" ] || ! kill -0 "$owner" 2>/dev/null; then
			rm -f "$lock" # its owner was killed
			continue
		fi
		[ "$waiting" = "$owner" ] || say "waiting for process $owner, which is building (if it is not, remove $lock)"
		waiting=$owner
		sleep 1
	done
}

# publish moves the finished $tmp into place. If somebody else was faster, mv puts
# it inside the directory that is there now, which holds the same.
publish() {
	mv "$tmp" "$1"
	rm -rf "$1/${tmp##*/}"
	tmp=
}

# progress reports how far the build is until it is killed or this script is gone.
# The redirection keeps sleep, which outlives a kill, off the caller's pipes.
progress() {
	elapsed=0
	while sleep 15 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
		elapsed=$((elapsed + 15))
		say "$elapsed s, compiled $(grep -c -v ' ' "$1") packages (at most $2), then it links"
	done
}

build_hyper() {
	say "building Kubernetes $version, once. This takes about 10 minutes on 2 cores and"
	say "4 GB of Go build cache; less if the cache has parts of it."
	total=$(go list -deps ./hyper | wc -l | tr -d ' ')
	progress "$tmp/log" "$total" >/dev/null &
	reporter=$!
	if ! go build -v -buildvcs=false -ldflags "$ldflags" -o "$tmp/hyper" ./hyper >"$tmp/log" 2>&1; then
		kill "$reporter"
		tail -n 30 "$tmp/log" >&2
		fail "the build failed"
	fi
	kill "$reporter"
	rm "$tmp/log"
	for name in etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet; do
		ln -s hyper "$tmp/$name"
	done
}

build_up() {
	say "building up"
	go build -buildvcs=false -o "$tmp/up" ./up >&2
}

# part builds directory $1 with the function $2, unless it is there.
part() {
	[ ! -d "$1" ] || return 0
	acquire_lock
	if [ ! -d "$1" ]; then # nobody built it while we waited
		tmp=$(mktemp -d "$cache/.build-XXXXXX")
		"$2"
		publish "$1"
	fi
	rm -f "$lock"
}

link_all() {
	for program in "$assets"/etcd "$assets"/kube* "$up/up"; do
		ln -s "$program" "$tmp/"
	done
}

mkdir -p "$cache"
[ -w "$cache" ] || fail "cannot write to $cache"
up_hash=$(cat go.mod go.sum up/*.go | short_hash)
up=$cache/up-$up_hash

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	for name in etcd kube-apiserver kube-controller-manager kubectl; do
		[ -x "$KUBEBUILDER_ASSETS/$name" ] || fail "KUBEBUILDER_ASSETS is set, but $KUBEBUILDER_ASSETS/$name is not there." \
			"(The archives for envtest have no kube-controller-manager: add one of the same version," \
			"or unset KUBEBUILDER_ASSETS to build everything.)"
	done
	assets=$(cd "$KUBEBUILDER_ASSETS" && pwd)
	name=assets
else
	hyper_hash=$({ echo "$ldflags" && cat go.mod go.sum hyper/*.go; } | short_hash)
	assets=$cache/hyper-$version-$hyper_hash
	part "$assets" build_hyper
	name=$version
fi
part "$up" build_up

# The two parts have hashes of their own, so that a change of up does not link
# Kubernetes anew. What is printed is a directory of links to both.
dir=$cache/controlplane-$name-$(echo "$assets $up_hash" | short_hash)
part "$dir" link_all
echo "$dir"
