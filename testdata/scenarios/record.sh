#!/bin/sh
# Records live.yaml and cache.yaml of the scenarios that begin with an existing
# cache, from a real API server with real controllers, so that managedFields and
# defaults are the server's own. Run it when the children that
# we write have changed; then make golden, and read the difference.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
assets=$(sh "$root/testdata/controlplane/build.sh")
state=$(mktemp -d)
(cd "$root" && go build -o "$state/clusteredcache" ./cmd/clusteredcache)
"$assets/up" --assets "$assets" --dir "$state/cluster" --crds "$root/deploy/crd" >"$state/out" &
up=$!
trap 'kill $up; wait $up || true; rm -rf "$state"' EXIT
until grep -q '^ready' "$state/out"; do kill -0 $up; sleep 0.2; done
KUBECONFIG=$state/cluster/kubeconfig
export KUBECONFIG

k() { "$assets/kubectl" -n shop "$@"; }
quiet() { "$@" >/dev/null; }
reconcile() { "$state/clusteredcache" reconcile -n shop --yes "$@" >/dev/null 2>&1 || true; }
change() { quiet k patch "$1" cache --type=merge --field-manager="$2" -p "$3"; }
until_empty() { until [ -z "$(k get cc,sts,svc,pdb,pod -o name 2>/dev/null)" ]; do sleep 0.5; done; }

# start SIZE [MORE]: a settled cache; MORE is further YAML of the spec.
start() {
	quiet k apply --server-side --field-manager=user -f - <<-END
		apiVersion: cache.example.com/v1
		kind: ClusteredCache
		metadata: {name: cache}
		spec: {version: "1.6.38", size: $1${2:+, $2}}
	END
	reconcile --wait
}

# record SCENARIO LESSON [OBJECT...]: the cache and its children as they are now,
# and further objects, with a fixed uid and fixed times.
record() {
	dir=$root/testdata/scenarios/$1
	lesson=$2
	shift 2
	mkdir -p "$dir"
	uid=$(k get cc cache -o jsonpath='{.metadata.uid}')
	fix() { sed -e "s/$uid/00000000-0000-4000-8000-000000000001/g" -e 's/"20[0-9][0-9]-[0-9T:-]*Z"/"2026-11-30T11:00:00Z"/'; }
	{ echo "# $lesson"; k get cc cache -o yaml --show-managed-fields; } | fix >"$dir/cache.yaml"
	for o in sts/cache svc/nodes-cache svc/cache pdb/cache "$@"; do
		if k get "$o" >/dev/null 2>&1; then echo ---; k get "$o" -o yaml --show-managed-fields; fi
	done | fix | sed 1d >"$dir/live.yaml"
}

finish() {
	quiet k delete cc cache --wait=false
	reconcile
	until_empty
}

quiet k create namespace shop
start 3
record converged "Everything is as it should be: nothing to do, and nothing is asked of the server."
change cc user '{"spec":{"size":5}}'
record scale-up "A larger size is one changed field; no node restarts."
change cc user '{"spec":{"size":1}}'
record three-to-one "A single node needs no disruption budget: it goes with the scale-down, in one plan."
change cc user '{"spec":{"size":3,"version":"1.6.39"}}'
record version-change "A new version restarts the nodes; currentVersion stays what runs until the last node has moved."

change cc user '{"spec":{"size":3,"version":"broken-1.6.39"}}'
reconcile
until [ "$(k get pod cache-2 -o jsonpath='{.status.containerStatuses[0].state.waiting.reason}')" = ImagePullBackOff ]; do sleep 0.2; done
record image-broken "A node's image cannot be pulled, for longer than the deadline: the rollout waits at that node, and the status names it. The other nodes run on." pod/cache-0 pod/cache-1 pod/cache-2
change cc user '{"spec":{"version":"1.6.38"}}'
reconcile --wait
quiet k scale sts cache --replicas=6
sleep 2
change svc label-editor '{"metadata":{"labels":{"app.kubernetes.io/name":"other","tier":"theirs"}}}'
change pdb label-editor '{"metadata":{"labels":{"app.kubernetes.io/instance":null}}}'
change sts image-updater '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":5,"automountServiceAccountToken":true}}}}'
record drift "Others changed what is ours: every field is set back, and named with who took it. What is not ours stays."
reconcile --wait
quiet k delete svc nodes-cache
record child-deleted "A deleted child is made again."
reconcile --wait

quiet k patch svc cache --type=json --field-manager=thief -p '[{"op":"replace","path":"/metadata/ownerReferences","value":[]}]'
record name-conflict "An object of a child's name that nobody controls is not written to; the message gives the way out."
change svc user '{"metadata":{"annotations":{"cache.example.com/adopt-by":"cache"}}}'
record adoption "The annotation adopt-by lets the cache take the object over."
quiet k delete cc cache --wait=false
record deleting "A cache that is being deleted is let go of; nothing is applied to its children."
change cc user '{"spec":{"suspend":true}}'
record deleting-suspended "A suspended cache that is being deleted keeps its finalizer, and says so."
change cc user '{"spec":{"suspend":false}}'
reconcile
quiet k delete svc cache
until_empty

quiet k apply -f - <<-END
	apiVersion: storage.k8s.io/v1
	kind: StorageClass
	metadata: {name: fast}
	provisioner: test.example.com/none
	allowVolumeExpansion: true
END
start 3 'engine: Custom, image: registry.example.com/team/cache, storage: {size: 1Gi, storageClassName: fast}'
claims='pvc/data-cache-0 pvc/data-cache-1 pvc/data-cache-2'
# volumes SIZE: no storage system runs here; every claim gets a volume of SIZE.
volumes() { for c in $claims; do quiet k patch "$c" --subresource=status --type=merge -p '{"status":{"phase":"Bound","capacity":{"storage":"'"$1"'"}}}'; done; }
volumes 1Gi
change cc user '{"spec":{"storage":{"size":"2Gi"},"size":4}}'
record storage-grows "Larger volumes: the claims ask for more, and the StatefulSet is replaced when they have it. The new size goes through at once." sc/fast $claims
change cc user '{"spec":{"size":3}}'
reconcile
volumes 2Gi
record storage-grown "The volumes have grown: the StatefulSet is made anew around its nodes, with a claim template of the new size." sc/fast $claims
reconcile --wait
change cc user '{"spec":{"storage":null,"size":3}}'
record storage-removed "Storage cannot be taken away either: volumes and mounts stay as they are."
finish

quiet k create cm cfg --from-literal=a=1
start 2 'config: {name: cfg}'
quiet k patch cm cfg --type=merge -p '{"data":{"a":"2"}}'
record config-changed "New content of the ConfigMap is a new revision of the nodes."
k get cm cfg -o yaml | grep -v -e resourceVersion -e uid -e creationTimestamp >"$root/testdata/scenarios/config-changed/config.yaml"
quiet k delete cm cfg
record config-deleted "Without its ConfigMap no node could start: the StatefulSet waits, the rest is as it was."
change cc user '{"spec":{"config":null}}'
record config-removed "A field that leaves the spec leaves the StatefulSet, and shows as a removal."
finish
echo "recorded; now: make golden"
