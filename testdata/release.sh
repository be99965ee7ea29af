#!/bin/sh
# Makes dist/: see `make release`. The same commit, version and Go release give
# the same bytes.
set -eu
cd "$(dirname "$0")/.."

export CGO_ENABLED=0
rm -rf dist
mkdir -p dist/build

# archive writes $1.tar.gz with the files of directory $1.
archive() {
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "dist/build/$1" -cf - . | gzip -n >"dist/$1.tar.gz"
}

# The documents, and what they link to.
documents="LICENSE README.md CONTRIBUTING.md api/README.md cmd/clusteredcache/README.md deploy reconcile/README.md
	reconcile/doc.go reconcile/report/doc.go testdata/bench/README.md testdata/controlplane/README.md"

for platform in $PLATFORMS; do
	name=clusteredcache_${platform%/*}_${platform#*/}
	mkdir "dist/build/$name"
	GOOS=${platform%/*} GOARCH=${platform#*/} "$GO" build -trimpath -buildvcs="$STAMP" \
		-ldflags "-s -w -X main.version=$VERSION" -o "dist/build/$name/clusteredcache" ./cmd/clusteredcache
	ln -s clusteredcache "dist/build/$name/kubectl-clusteredcache"
	# shellcheck disable=SC2086 # a list of paths
	tar -cf - $documents | tar -xf - -C "dist/build/$name"
	archive "$name"
done

# install.yaml is deploy/ with the image of this release.
mkdir dist/build/install
cp -R deploy dist/build/deploy
cat >dist/build/install/kustomization.yaml <<END
resources: [../deploy]
images: [{name: clusteredcache, newName: "${IMAGE%:*}", newTag: "${IMAGE##*:}"}]
END
kubectl=$(command -v kubectl || echo "$(testdata/controlplane/build.sh)/kubectl")
"$kubectl" kustomize dist/build/install >dist/install.yaml

rm -r dist/build
sums=$(cd dist && { sha256sum -- * 2>/dev/null || shasum -a 256 -- *; })
echo "$sums" >dist/checksums.txt
ls -l dist
