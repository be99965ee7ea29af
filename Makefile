# `make` alone lists the targets. They need Go, git and make. Other tools are built
# from the modules under testdata/, at the versions pinned there, into $(CACHE);
# nothing is installed.

.DEFAULT_GOAL := help
.SUFFIXES:

GO ?= go

# Packages that ./... leaves out.
ASIDE := ./testdata/e2e ./testdata/e2e/tool ./testdata/reference ./testdata/slowest

# What `clusteredcache version` says.
VERSION ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),v0.0.0-dev)

# More flags for `go test`: make test TESTFLAGS='-run TestName -v'
TESTFLAGS ?=

# The fleets that `make bench` measures: make bench BENCH_FLEETS='100 1000'
BENCH_FLEETS ?= 100 1000 10000

# What `make fuzz` runs; `make test` runs their seeds.
FUZZ := cmd/clusteredcache/FuzzFlags cmd/clusteredcache/FuzzRender reconcile/observe/FuzzListedCache \
	reconcile/plan/FuzzManagedFields reconcile/plan/FuzzLive reconcile/resources/FuzzImage reconcile/resources/FuzzOverlay

# One setting for everything, so that the control plane, the product and its tests
# share what is compiled.
export CGO_ENABLED ?= 0

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/clusteredcache

# Other pinned versions, or another Go release, make another directory.
TOOLS := $(CACHE)/tools-$(shell { $(GO) env GOVERSION; cat testdata/tools/go.mod testdata/tools/go.sum; } | git hash-object --stdin | cut -c 1-12)

# A commit that cannot be read (none yet, or files of another user) must not fail
# the build.
STAMP := $(shell git rev-parse --verify --quiet HEAD >/dev/null 2>&1 && echo auto || echo false)

##@ Use

.PHONY: build
build: ## Build bin/clusteredcache, one static file
	$(GO) build -trimpath -buildvcs=$(STAMP) -ldflags "-s -w -X main.version=$(VERSION)" -o bin/clusteredcache ./cmd/clusteredcache

# make install PREFIX=$HOME/.local; packagers add DESTDIR.
PREFIX ?= /usr/local

.PHONY: install
install: build ## Put it into $(PREFIX)/bin, also as the plugin `kubectl clusteredcache`
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 bin/clusteredcache "$(DESTDIR)$(PREFIX)/bin/clusteredcache"
	ln -sf clusteredcache "$(DESTDIR)$(PREFIX)/bin/kubectl-clusteredcache"

.PHONY: demo
demo: ## Show the main job on a throw-away control plane
	@testdata/demo/demo.sh

.PHONY: bench
bench: build control-plane ## Measure passes next to alternatives; write the tables into testdata/bench/README.md
	$(GO) build -C testdata/bench -buildvcs=false -ldflags "-s -w" -o ../../bin/bench/ ./...
	$(GO) test -c -o bin/bench/plan.test ./reconcile/plan
	bin/bench/bench -fleets "$(BENCH_FLEETS)"

##@ Check

.PHONY: test
test: control-plane ## Run the tests, on a real API server with the real controllers
	$(GO) test -C testdata/controlplane -timeout 5m ./up
	$(GO) test -json -timeout 40m $(TESTFLAGS) ./... | $(GO) run ./testdata/slowest $(filter -v,$(TESTFLAGS))

.PHONY: test-crash
test-crash: control-plane ## Hit the program with every fault at every request (under an hour; CRASH_POINTS=500 for a sample)
	CRASH_POINTS=$(or $(CRASH_POINTS),all) $(GO) test ./reconcile/internal/crash -run TestCrashMatrix -count=1 -timeout 12h -v

# Go spends up to a minute on making one new input smaller, that is all of it.
.PHONY: fuzz
fuzz: ## Feed the decoders with what nobody wrote, a minute each
	@set -e; for target in $(FUZZ); do \
		$(GO) test "./$${target%/*}" -run '^$$' -fuzz "^$${target##*/}$$" -fuzztime 1m -fuzzminimizetime 1s; done

# Before the tests that would build it too, so that its progress is seen.
.PHONY: control-plane
control-plane:
	@testdata/controlplane/build.sh >/dev/null

.PHONY: e2e
e2e: ## Run the shipped CronJob and real memcached on a real node (root, Debian 12, cgroup v1)
	@testdata/e2e/run.sh

.PHONY: verify
verify: verify-generated verify-tidy verify-format vet lint verify-tracked ## Check everything that needs no control plane
	@echo "verify: everything is in order"

.PHONY: vet
vet:
	$(GO) vet ./... $(ASIDE)
	$(GO) vet -C testdata/bench ./...

.PHONY: lint
lint: golangci-lint ## Run the linters that .golangci.yml names
	"$(TOOLS)/golangci-lint" run ./... $(ASIDE)
	cd testdata/controlplane && "$(TOOLS)/golangci-lint" run ./up
	cd testdata/bench && "$(TOOLS)/golangci-lint" run

# Not part of verify: its answer changes with the database, not with the code.
.PHONY: vuln
vuln: govulncheck ## Look for known vulnerabilities in what the program calls (asks vuln.go.dev)
	"$(TOOLS)/govulncheck" ./cmd/...

##@ Change

.PHONY: generate
generate: controller-gen ## Write what is made from api/v1 and the rbac markers
	$(call generate-in,.)

.PHONY: golden
golden: ## Write the golden files anew; read the difference before you commit it
	UPDATE_GOLDEN=1 $(GO) test -count=1 ./reconcile/resources ./reconcile/plan ./reconcile/status ./reconcile/report
	@git --no-pager diff --stat

##@ Publish

PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

# What install.yaml runs.
IMAGE ?= clusteredcache:$(VERSION)

.PHONY: release
release: ## Make dist/: an archive for each of $(PLATFORMS), install.yaml for $(IMAGE), checksums
	GO="$(GO)" VERSION="$(VERSION)" STAMP="$(STAMP)" IMAGE="$(IMAGE)" PLATFORMS="$(PLATFORMS)" testdata/release.sh

.PHONY: clean
clean: ## Remove bin/ and dist/
	rm -rf bin dist
	@echo "Kept for the next time: $(CACHE)"

.PHONY: help
help:
	@awk 'BEGIN { FS = ": .*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", substr($$1, 1, index($$1 ":", ":") - 1), $$2 }' Makefile

# What verify is made of. Each says what to do.

# In a copy, so that a look changes nothing.
.PHONY: verify-generated
verify-generated: controller-gen
	@set -e; copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
	cp -R go.mod go.sum api deploy reconcile testdata "$$copy"; \
	rm -rf "$$copy/deploy/crd" "$$copy/deploy/rbac" "$$copy/api/v1/applyconfiguration"; \
	($(call generate-in,$$copy)) >/dev/null; \
	for path in api deploy; do \
		diff -r "$$path" "$$copy/$$path" || { \
			echo "verify: generated files differ from api/v1 and the rbac markers: run 'make generate'" >&2; exit 1; }; \
	done

.PHONY: verify-tidy
verify-tidy:
	@for dir in . testdata/bench testdata/controlplane testdata/e2e/coredns testdata/lua testdata/tools; do \
		(cd $$dir && GOWORK=off $(GO) mod tidy -diff) || { \
			echo "verify: go.mod or go.sum is not tidy: run 'go mod tidy' in $$dir" >&2; exit 1; }; \
	done

.PHONY: verify-format
verify-format:
	@files=$$(gofmt -l .); [ -z "$$files" ] || { \
		echo "verify: not formatted: run 'gofmt -w' on" $$files >&2; exit 1; }

.PHONY: verify-tracked
verify-tracked:
	@files=$$(git status --porcelain --untracked-files=all | sed -n 's/^?? //p'); [ -z "$$files" ] || { \
		echo "verify: neither tracked nor ignored; 'git add' or remove" $$files >&2; exit 1; }

# Tools.

generate-in = cd "$(1)" && \
	"$(TOOLS)/controller-gen" object crd applyconfiguration paths=./api/v1 output:crd:dir=deploy/crd && \
	"$(TOOLS)/controller-gen" rbac:roleName=clusteredcache paths=./reconcile/... output:rbac:dir=deploy/rbac && \
	sed 's/^kind: ClusterRole$$/kind: Role/' deploy/rbac/role.yaml >deploy/components/namespaces/namespace/role.yaml && \
	sed 's/^  name: clusteredcache$$/  name: clusteredcache-diff/' deploy/rbac/role.yaml >deploy/components/diff-only/role.yaml && \
	$(GO) run ./testdata/reference deploy/crd/cache.example.com_clusteredcaches.yaml api/v1/conditions.go api/README.md

# tool builds the program of a package of testdata/tools, unless it is there.
tool = [ -x "$(TOOLS)/$(notdir $(1))" ] || { \
	echo "building $(notdir $(1)), once" >&2; \
	GOFLAGS= GOWORK=off $(GO) build -C testdata/tools -buildvcs=false -ldflags "-s -w" -o "$(TOOLS)/" $(1); }

.PHONY: controller-gen
controller-gen:
	@$(call tool,sigs.k8s.io/controller-tools/cmd/controller-gen)

.PHONY: golangci-lint
golangci-lint:
	@$(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

.PHONY: govulncheck
govulncheck:
	@$(call tool,golang.org/x/vuln/cmd/govulncheck)
