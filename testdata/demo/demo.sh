#!/bin/sh
# This demo shows the main job of clusteredcache on its own control plane: an API
# server with the real StatefulSet and garbage-collection controllers. Without
# machines, the control plane itself marks pods Running and Ready, and no image is
# pulled. The demo leaves nothing behind.
set -eu
cd "$(dirname "$0")/../.."

dir=
finish() {
	status=$?
	trap - EXIT HUP INT TERM
	exec 3>&- # up ends when its standard input ends
	wait
	[ -z "$dir" ] || rm -rf "$dir"
	exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# build_clusteredcache builds without -trimpath. So Go does not compile packages again
# that it compiled for the control plane.
build_clusteredcache() {
	echo "building clusteredcache" >&2
	CGO_ENABLED=0 go build -buildvcs=false -o "$dir/bin/clusteredcache" ./cmd/clusteredcache
}

# start_control_plane runs up until we end, even if we are killed. It points kubectl
# and clusteredcache at the control plane.
start_control_plane() {
	echo "starting a control plane" >&2
	mkfifo "$dir/stdin"
	: >"$dir/stdout"
	"$assets/up" --assets "$assets" --dir "$dir/state" --crds deploy/crd --pod-delay 300ms --until-stdin-closes \
		<"$dir/stdin" >"$dir/stdout" 2>"$dir/stderr" &
	up=$!
	exec 3>"$dir/stdin"
	until grep -q '^ready KUBECONFIG=' "$dir/stdout"; do
		kill -0 "$up" 2>/dev/null || { cat "$dir/stderr" >&2; exit 1; }
		sleep 0.2
	done
	KUBECONFIG=$(sed -n 's/^ready KUBECONFIG=//p' "$dir/stdout")
	PATH=$dir/bin:$assets:$PATH
	export KUBECONFIG PATH
}

step() {
	echo
	printf '# %s\n' "$@"
}

# run prints a command as a user would type it, and runs it. The command does not get
# the pipe that keeps the control plane alive.
run() {
	printf '\n$'
	for word in "$@"; do
		case $word in
		*[!A-Za-z0-9./=,:_-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	"$@" 3>&-
}

assets=$(testdata/controlplane/build.sh)
dir=$(mktemp -d)
build_clusteredcache
start_control_plane

step "A namespace with three ClusteredCaches. No pass has seen them yet."
run kubectl create namespace shop
run kubectl apply -f testdata/demo/sessions.yaml -f testdata/demo/catalog.yaml -f testdata/demo/preview.yaml
run kubectl get clusteredcaches -A

step "One pass. It takes every step that is safe now, but does not create the nodes" \
	"of catalog: the ConfigMap of catalog does not exist."
run clusteredcache reconcile -A --yes

step "The ConfigMap is created. Passes follow until everything has settled."
run kubectl apply -f testdata/demo/catalog-config.yaml
run clusteredcache reconcile -A --wait --yes
run kubectl get clusteredcaches -A
run kubectl -n shop get statefulsets,services,poddisruptionbudgets

step "A second pass over a settled fleet reads everything and writes nothing."
run clusteredcache reconcile -A --verbose --yes

step "Scale up, as an autoscaler would."
run kubectl -n shop scale clusteredcache sessions --replicas=5
run clusteredcache reconcile -n shop sessions --wait --yes

step "Another version: the nodes are replaced one after the other."
run kubectl -n shop patch clusteredcache sessions --type=merge --patch '{"spec":{"version":"1.6.39"}}'
run clusteredcache reconcile -n shop sessions --wait --yes

step "A version whose image cannot be pulled: one node is down, the others keep running," \
	"and the status names that node. The earlier version heals it."
run kubectl -n shop patch clusteredcache sessions --type=merge --patch '{"spec":{"version":"broken-1.6.40"}}'
run clusteredcache reconcile -n shop sessions --linger=5s --yes
run clusteredcache status -n shop --verbose
run kubectl -n shop patch clusteredcache sessions --type=merge --patch '{"spec":{"version":"1.6.39"}}'
run clusteredcache reconcile -n shop sessions --wait --yes

step "Somebody changes a StatefulSet by hand. The pass names the tool, and repairs it."
run kubectl -n shop scale statefulset sessions --replicas=1
run clusteredcache reconcile -A --wait --yes
run kubectl get clusteredcaches -A

step "A cache is deleted. First, diff shows what comes next: its clients must leave."
run kubectl -n shop delete clusteredcache sessions --wait=false
run clusteredcache diff -n shop sessions || [ $? -eq 1 ] # there are changes

step "Then the whole deletion in one run: clients have time to leave, and a hook runs once" \
	"for each node. The pass removes its finalizer, the garbage collector the children."
run clusteredcache reconcile -n shop sessions --wait --yes
run kubectl -n shop wait --for=delete statefulset/sessions --timeout=60s
run kubectl -n shop get clusteredcaches,statefulsets

step "This was the demo. Its control plane ends now."
