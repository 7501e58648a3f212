# Everything that people and CI do with this project. 'make help' lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := bin/op-readiness
CPUS := $(shell getconf _NPROCESSORS_ONLN)
# The Kubernetes version of the simulated cluster that tests and demo use.
KUBERNETES_VERSION ?= v1.36.3
# What a simulated cluster and a run on it are made of.
BINARIES := kube-apiserver kube-controller-manager kube-scheduler kubectl etcd kwok kwokctl e2e.test op-readiness.test
# The tests of op-readiness.test are a module of their own. With the flags with which
# binaries are built, what e2e.test is made of is not compiled a second time.
IN_SUITE := cd suite && CGO_ENABLED=0 GOWORK=off GOFLAGS="-trimpath -mod=readonly"

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/op-readiness
	$(GO) build -trimpath -o $(BIN) ./cmd/op-readiness

.PHONY: binaries
binaries: build ## Get the Kubernetes binaries into the cache; from source this takes about 15 minutes, once
	@$(BIN) e2e fetch --kubernetes-version $(KUBERNETES_VERSION) $(BINARIES) >/dev/null

.PHONY: demo
demo: binaries ## Run the standard on a simulated hybrid cluster, from nothing to a verdict
	scripts/demo.sh

.PHONY: node
node: binaries
	$(GO) run ./scripts/node prepare

.PHONY: kind
kind: binaries
	$(GO) run ./scripts/kind prepare

.PHONY: browser
browser: ## Get the browser for tests: Debian's chromium, as root on Debian
	@scripts/browser.sh

# Tests wait for clusters more than they compute, so that more of them run beside
# each other than there may be cores; a cluster takes half a gigabyte of memory.
# Those that wait for the machine's one real node come first, and use it in turn.
ON_THE_REAL_NODE := ./test/mutants ./test/realnode ./test/node

.PHONY: test
test: node browser kind ## Run all tests, also those on a simulated cluster and, where the machine can, on a real node
	$(IN_SUITE) $(GO) test ./judge/...
	$(GO) test -timeout 30m -p $(shell expr $(CPUS) + 3) -parallel $(shell expr $(CPUS) \* 2) $(ON_THE_REAL_NODE) ./...

.PHONY: test-fast
test-fast: ## Run the tests that take no cluster, browser, node or second build: what to run while you work
	$(GO) test -count=1 -short -skip '^Example$$' $$($(GO) list ./... | grep -v /test/)

.PHONY: test-node
test-node: node ## Run the tests on a real Linux node; needs root, and on Debian installs what is missing
	$(GO) test -count=1 -v ./test/realnode ./test/node

.PHONY: test-kind
test-kind: kind ## Run the tests on kind clusters, also of three nodes; needs Docker, or root on Debian bookworm
	$(GO) test -count=1 -v -timeout 30m -p 1 ./test/kind ./internal/target/provider/kind -kind.all
	$(GO) test -count=1 -v -timeout 30m ./test/act -run Kind -kind.all

.PHONY: mutants
mutants: node ## Break simulated clusters, and show that each test of op-readiness.test fails for its reason
	$(GO) test -v -count=1 -timeout 60m -parallel $(shell expr $(CPUS) \* 4) ./test/mutants -mutants.all

.PHONY: verify
verify: verify-format verify-modules verify-vet verify-lint verify-deadcode verify-generated verify-workflows verify-specs ## Check format, modules, lint, dead code and generated files

.PHONY: verify-format
verify-format:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt -w these: $$unformatted" >&2; exit 1; fi

.PHONY: verify-modules
verify-modules:
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: verify-vet
verify-vet:
	$(GO) vet ./...
	GOOS=windows $(GO) vet ./cmd/... ./internal/...
	GOOS=darwin $(GO) vet ./cmd/... ./internal/...
	$(IN_SUITE) $(GO) vet ./...

.PHONY: verify-lint
verify-lint:
	@echo "Linting; building the linter takes about 3 minutes, once"
	$(GO) tool -modfile=scripts/lint/go.mod golangci-lint run
	@linter=$$($(GO) tool -modfile=scripts/lint/go.mod -n golangci-lint); \
	$(IN_SUITE) "$$linter" run --config ../.golangci.yml

# Roots are the program and what generates parts of it. The public packages are
# for others, too.
.PHONY: verify-deadcode
verify-deadcode:
	@tool=$$($(GO) tool -modfile=scripts/lint/go.mod -n deadcode); \
	dead=$$(GOOS=linux "$$tool" \
		-filter '^github.com/windows-op-readiness/windows-op-readiness/(cmd|internal)/' \
		./cmd/op-readiness ./docs/generate ./internal/engine/binaries/pins/generate); \
	if [ -n "$$dead" ]; then printf 'nothing reaches these, remove them:\n%s\n' "$$dead" >&2; exit 1; fi

.PHONY: verify-generated
verify-generated:
	scripts/verify-generated.sh

# Not of verify: each version takes minutes from a cold build cache.
.PHONY: verify-suite
verify-suite: build
	@for pin in internal/engine/binaries/pins/kubernetes-*; do \
		scripts/catalogue.sh --check "$$($(BIN) e2e fetch --kubernetes-version "$${pin#*kubernetes-}" op-readiness.test)"; \
	done

.PHONY: verify-workflows
verify-workflows: build
	scripts/verify-workflows.sh

.PHONY: verify-specs
verify-specs: build
	$(BIN) specs lint

.PHONY: generate
generate: ## Make generated files again: build pins, op-readiness.test's sources and list, the CLI reference, what op-readiness.yaml makes
	$(GO) generate ./...
	scripts/catalogue.sh "$$($(GO) run ./cmd/op-readiness e2e fetch op-readiness.test)"
	$(GO) run ./cmd/op-readiness generate testgrid
	$(GO) run ./cmd/op-readiness generate prow
	$(GO) run ./cmd/op-readiness generate workflows

.PHONY: bench
bench: binaries ## Measure what the project promises to be good at; prints ratios, fails below target
	$(GO) run ./test/bench/run
	$(GO) run ./test/bench/shards
	$(GO) run ./test/bench/publish
	$(GO) run ./test/bench/evidence
	$(GO) run ./test/bench/judge
	$(GO) run ./test/bench/preview
	$(GO) run ./test/bench/comment
	$(GO) run ./test/bench/jobs
	$(GO) run ./test/bench/workflow
	$(GO) run ./test/bench/redact
	$(GO) run ./test/bench/suite
	$(GO) run ./test/bench/clusters
	$(GO) run ./test/bench/beside

.PHONY: measure
measure: ## Print how large the program is, what is exported for nobody, and what its start costs
	@$(GO) run ./scripts/measure

.PHONY: clean
clean: ## Remove what was built here; the cache of Kubernetes binaries stays
	rm -rf bin results
