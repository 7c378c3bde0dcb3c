# kvbench: `make` lists what can be made.

GO ?= go
# More flags for the benchmarks of `make bench`, for example ARGS='-cache-dir /mnt/nvme/kv'.
ARGS ?=
# For each fuzz target. A number of inputs, not a time: up to Go 1.26 the end of a time can be reported as a failure
# (go.dev/issue/75804).
FUZZTIME ?= 50000x

DIST_ARCHS := amd64 arm64
CROSS := darwin/arm64 linux/arm64
REVISION = $(shell git rev-parse HEAD 2>/dev/null)$(shell git diff --quiet HEAD 2>/dev/null || echo +dirty)

.DEFAULT_GOAL := help
.PHONY: help test bench dist lint vet fmt staticcheck fuzz cross clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Building a package that needs both cgo and the race detector tells whether the C compiler works, headers included.
test: fmt ## go vet, gofmt check, go test -race ./... (without -race where there is no C compiler)
	@if why=$$($(GO) build -race runtime/cgo 2>&1); then race=' -race'; else \
		race=; export CGO_ENABLED=0; \
		echo "make test: running WITHOUT the race detector, which needs a working C compiler (cgo):"; \
		echo "$$why" | head -n 3 | sed 's/^/  /'; \
	fi; \
	echo "$(GO) vet ./..." && $(GO) vet ./... && \
	echo "$(GO) test$$race ./..." && $(GO) test$$race ./...

bench: ## plain I/O, then MLPerf option 1, both small and in a temporary directory; leaves nothing behind
	@results=$$(mktemp -d) && trap 'rm -rf "$$results"' EXIT && trap 'exit 130' INT && trap 'exit 143' TERM && \
	$(GO) test ./benchmarks -run '^$$' -bench 'StorageCeiling|MaxStorageStress' -results-dir "$$results" $(ARGS)

dist: ## static binaries for machines without Go: dist/linux-{amd64,arm64}/kvbench.test
	@set -e; for arch in $(DIST_ARCHS); do \
		out=dist/linux-$$arch/kvbench.test; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) test -c -trimpath \
			-ldflags '-s -w -X kvbench/kvbench.revision=$(REVISION)' -o "$$out" ./benchmarks; \
		ls -l "$$out"; \
	done

lint: vet fmt staticcheck ## go vet, gofmt check, staticcheck

vet:
	$(GO) vet ./...

fmt:
	@out=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); \
	if [ -n "$$out" ]; then echo "not formatted, run gofmt -w on:"; echo "$$out"; exit 1; fi

staticcheck:
	$(GO) tool staticcheck ./...

fuzz: ## every fuzz target for a few seconds (FUZZTIME)
	@set -e; list=$$($(GO) test -list '^Fuzz' ./...); \
	targets=$$(echo "$$list" | awk '/^Fuzz/ { name[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2 ":" name[i]; n = 0 }'); \
	if [ -z "$$targets" ]; then echo "make fuzz: no fuzz target found, which cannot be right"; exit 1; fi; \
	for target in $$targets; do \
		echo "$$target"; \
		$(GO) test "$${target%:*}" -run '^$$' -fuzz "^$${target#*:}\$$" -fuzztime $(FUZZTIME); \
	done

cross: ## build and vet for other platforms, without cgo
	@set -e; for platform in $(CROSS); do \
		echo "$$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build ./...; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) vet ./...; \
	done

clean: ## remove dist/ (results of runs are kept)
	rm -rf dist
