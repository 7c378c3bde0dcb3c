# kvbench: `make` lists what can be made.

GO ?= go
# More flags for the benchmarks of `make bench`, for example ARGS='-cache-dir /mnt/nvme/kv'.
ARGS ?=
# For each fuzz target. A number of inputs, not a time: up to Go 1.26 the end of a time can be reported as a failure
# (go.dev/issue/75804).
FUZZTIME ?= 20000x
# For targets whose inputs are slow: each makes a whole document, a file or a set of parameters, or is tokenized.
FUZZTIME_DOCUMENTS ?= 2000x

DIST_ARCHS := amd64 arm64
CROSS := darwin/arm64 linux/arm64
# go-nvml leaves the driver's functions undefined until their first call. Some linkers bind all functions at start by default:
# such a program would not start. Only links with cgo use this flag, which linkers of other systems do not know.
ifeq ($(shell uname),Linux)
LAZY := -extldflags=-Wl,-z,lazy
endif
export GOFLAGS := -ldflags=$(LAZY) $(shell $(GO) env GOFLAGS)
REVISION = $(shell git rev-parse HEAD 2>/dev/null)$(shell git diff --quiet HEAD 2>/dev/null || echo +dirty)

.DEFAULT_GOAL := help
.PHONY: help test test-all stress bench dist lint vet fmt staticcheck fuzz cross generate clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

test: fmt vet staticcheck ## what a person runs before a commit: gofmt, vet, staticcheck, the unit tests
	$(GO) test -short -vet=off ./...

# Each package is tested once, with the race detector where it or its tests start goroutines. The detector sees all packages
# that these call: one that only has a mutex needs no pass of its own. Buffers are poisoned under the detector when they are
# given back, for which two more packages run with it. The test of tracing/nvml needs cgo, which these builds have. The tests of
# e2e and kvreport wait for processes built without it.
GOROUTINES := ^\s*go (func|[A-Za-z_.]+)\(|\.Go\(|\.Parallel\(\)|synctest\.Test|RunParallel|AfterFunc
RACES := tiers/content tiers/memtier tiers/gputier tracing/nvml
NO_RACES := benchmarks/e2e tools/kvreport
# More than half of its time were loops over all buckets. It sees each use of a histogram by the sums that stand next to them.
UNSEEN := -gcflags=github.com/HdrHistogram/hdrhistogram-go=-race=false
race_packages = $(GO) list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do \
	case " $(NO_RACES) " in *" $${package\#*/} "*) continue;; esac; \
	case " $(RACES) " in *" $${package\#*/} "*) echo $$package; continue;; esac; \
	if grep -qE '$(GOROUTINES)' "$$dir"/*.go; then echo $$package; fi; done
# These, and packages with tests that skip under the detector because they have one thread or count allocations, are tested
# both ways.
both_ways = { printf '/%s$$\n' $(RACES); grep -lrE 'tiertest\.OneThread|RaceEnabled' --include='*_test.go' . | \
	xargs -n 1 dirname | sort -u | sed 's|^\.||; s|$$|$$|'; }
# A skip for lack of privilege is a failure here; KVTEST_REQUIRE_PRIVILEGED=0 allows it. The same for the object store of the
# tests, which the first of them builds (half a minute, from the module proxy).
KVTEST_REQUIRE_PRIVILEGED ?= 1
KVTEST_REQUIRE_S3 ?= 1
test-all: export KVTEST_REQUIRE_PRIVILEGED := $(KVTEST_REQUIRE_PRIVILEGED)
test-all: export KVTEST_REQUIRE_S3 := $(KVTEST_REQUIRE_S3)
test-all: fmt vet ## everything, as root: unit tests, privileged tests, end to end (15 minutes)
	@$(MAKE) --no-print-directory -j 2 test-waiting test-computing

# These tests wait most of the time: for windows, timeouts and storage that hangs. They run concurrently with the others, which
# need the processors, as does staticcheck.
WAITING := benchmarks/e2e
.PHONY: test-waiting test-computing
test-waiting:
	$(GO) test -vet=off -timeout 30m $(WAITING:%=./%)

test-computing: staticcheck
	@set -e; race=$$($(race_packages)); \
	plain=$$($(GO) list ./... | grep -vxF "$$($(GO) list $(WAITING:%=./%))"); \
	if why=$$(CGO_ENABLED=1 $(GO) build -race runtime/cgo 2>&1); then \
		plain=$$(echo "$$plain" | grep -vxF "$$(echo "$$race" | grep -v "$$($(both_ways))")"); \
		echo "$(GO) test -race"; CGO_ENABLED=1 $(GO) test -race $(UNSEEN) -vet=off -timeout 30m $$race; \
	else \
		echo "make test-all: NOT with the race detector, which needs a working C compiler (cgo):"; \
		echo "$$why" | head -n 3 | sed 's/^/  /'; \
	fi; \
	echo "$(GO) test"; $(GO) test -vet=off -timeout 30m $$plain

# What a test may not depend on: that it gets a processor soon.
STRESS ?= 5
stress: ## the unit tests five times while a load runs on all cores
	@load=; trap 'kill $$load' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
	for n in $$(seq $$(getconf _NPROCESSORS_ONLN)); do (while :; do :; done) & load="$$load $$!"; done; \
	$(GO) test -short -count $(STRESS) -timeout 30m ./...

COMPILING := echo "compiling the benchmarks: the first time this takes about two minutes" >&2
bench: ## plain I/O, then MLPerf option 1, both small and in a temporary directory (30 s; the first time 2 minutes more to compile); its results stay in kvbench-results/
	@$(COMPILING)
	@$(GO) test ./benchmarks -run '^$$' -bench 'StorageCeiling|MaxStorageStress' $(ARGS)

# The path of a new user: does it work here (bench), one drive, which of two drives.
.PHONY: drive drives
drive: ## one drive: plain I/O, the knee and MLPerf option 1, three times, and what you may quote (10 minutes): CACHE_DIR=DIR
	@[ -n "$(CACHE_DIR)" ] || { echo "make drive CACHE_DIR=DIR: which directory, on the drive to be measured?" >&2; exit 2; }
	@$(COMPILING)
	@$(GO) test ./benchmarks -run '^$$' -bench . -scenario drive -cache-dir '$(CACHE_DIR)' $(ARGS)

# The names of the two drives, also of their files.
A_NAME ?= a
B_NAME ?= b
DRIVES_OUT ?= kvbench-drives
# A compiled binary has Go's own flags with a prefix.
drive_args = -scenario drives $(patsubst -benchtime%,-test.benchtime%,$(ARGS))
drive_turn = '$(1)=$(DRIVES_OUT)/bench.test -results-dir $(DRIVES_OUT)/$(1) -cache-dir $(2) $(drive_args)'
# With -dry-run in ARGS the plan is all, and earlier results stay.
drives_plan = $(filter -dry-run --dry-run -dry-run=true,$(ARGS))
drives: ## which of two drives is faster, in turns A B B A, and what you may quote (12 minutes; COUNT=6 runs of each, the fewest): A=DIR B=DIR
	@[ -n "$(A)" ] && [ -n "$(B)" ] || { echo "make drives A=DIR B=DIR: which directories, on the drives to be compared?" >&2; exit 2; }
	@[ '$(abspath $(A))' != '$(abspath $(B))' ] || { echo "make drives: A and B are both $(A): give a directory on each of two drives" >&2; exit 2; }
	@if [ -e $(DRIVES_OUT)/bench.test ] && [ -e $(DRIVES_OUT)/$(A_NAME).txt ] && $(if $(drives_plan),false,true); then \
		before=$(DRIVES_OUT).$$(date +%Y%m%d-%H%M%S); mv $(DRIVES_OUT) $$before; echo "the earlier output is in $$before" >&2; fi
	@$(COMPILING)
	@mkdir -p $(DRIVES_OUT); [ -e $(DRIVES_OUT)/.gitignore ] || echo '*' >$(DRIVES_OUT)/.gitignore
	@$(GO) test -c -ldflags '$(LAZY) -X kvbench/kvbench/result.revision=$(REVISION)' -o $(DRIVES_OUT)/bench.test ./benchmarks
	@plan=$$($(DRIVES_OUT)/bench.test -dry-run -test.count $(or $(COUNT),6) -sweep 'cache-dir=$(A),$(B)' $(drive_args)) && \
		echo "$$plan" | sed '/^results in/d$(if $(drives_plan),,; /^Nothing was run/d)'
	@$(if $(drives_plan),exit 0;) $(GO) tool kvreport turns -count $(or $(COUNT),6) -out $(DRIVES_OUT) $(call drive_turn,$(A_NAME),$(A)) $(call drive_turn,$(B_NAME),$(B)) || [ $$? = 1 ]
	@$(if $(drives_plan),exit 0;) $(GO) tool kvreport html $(DRIVES_OUT)/$(A_NAME).txt $(DRIVES_OUT)/$(B_NAME).txt -ignore filesystem -o $(DRIVES_OUT)/drives.html
	@$(if $(drives_plan),exit 0;) $(GO) tool kvreport quote $(DRIVES_OUT)/$(A_NAME).txt $(DRIVES_OUT)/$(B_NAME).txt -ignore filesystem; code=$$?; \
		echo "the page with plots: $(DRIVES_OUT)/drives.html"; exit $$code

# All scenarios of users in one run; after a failed trial the others run. SCENARIOS='gpu-only mlperf' selects some.
SCENARIOS ?= $(sort $(filter-out drive drives,$(basename $(notdir $(wildcard benchmarks/scenarios/*.yaml)))))
in_memory := gpu-only cpu-only gpu-cpu
empty :=
comma := ,
.PHONY: scenarios
scenarios: ## users on each tier and on several, autoscaling, MLPerf's load: a table, page and workbook (8 minutes): CACHE_DIR=DIR TIME=5s
	@$(if $(and $(findstring -storage-capacity-gb,$(ARGS)),$(filter $(in_memory),$(SCENARIOS))),echo "make scenarios: -storage-capacity-gb would give $(filter $(in_memory),$(SCENARIOS)) a storage tier: SCENARIOS='$(filter-out $(in_memory),$(SCENARIOS))' leaves them out" >&2; exit 2)
	@$(COMPILING)
	@out=$(OUT)/$$(date +%Y%m%d-%H%M%S); $(GO) test ./benchmarks -run '^$$' -bench . -results-dir "$$out" \
		-scenario $(subst $(empty) $(empty),$(comma),$(strip $(SCENARIOS))) \
		$(if $(filter file,$(origin TIME)),,-benchtime $(TIME)) $(if $(COUNT),-count $(COUNT)) \
		$(if $(and $(CACHE_DIR),$(filter-out $(in_memory),$(SCENARIOS))),-cache-dir '$(CACHE_DIR)') \
		$(ARGS); code=$$?; [ -d "$$out" ] || exit $$code; \
	$(GO) tool kvreport html "$$out" -o "$$out/scenarios.html" && echo "page: $$out/scenarios.html" && \
	$(GO) tool kvreport xlsx "$$out" -o "$$out/scenarios.xlsx" && echo "workbook: $$out/scenarios.xlsx" && exit $$code

dist: ## static binaries for machines without Go: dist/linux-{amd64,arm64}/{kvbench.test,kvreport}
	@set -e; for arch in $(DIST_ARCHS); do \
		out=dist/linux-$$arch/kvbench.test; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) test -c -trimpath \
			-ldflags '-s -w -X kvbench/kvbench/result.revision=$(REVISION)' -o "$$out" ./benchmarks; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath \
			-ldflags '-s -w -X kvbench/kvbench/result.revision=$(REVISION)' \
			-o "$${out%kvbench.test}kvreport" ./tools/kvreport; \
		ls -l "$${out%/*}"/*; \
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
		time=$(FUZZTIME); \
		case $$target in */view/html:*|*/view/xlsx:*|*:FuzzShareGPT*|*:FuzzBlockFormats|*:FuzzValidation|*:FuzzTokenizer|*:FuzzConfig|*:FuzzIOTrace|*/load:FuzzRead) time=$(FUZZTIME_DOCUMENTS);; esac; \
		echo "$$target $$time"; \
		$(GO) test "$${target%:*}" -run '^$$' -fuzz "^$${target#*:}\$$" -fuzztime $$time -fuzzminimizetime 1s; \
	done

cross: ## build and vet for other platforms, without cgo
	@set -e; for platform in $(CROSS); do \
		echo "$$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build ./...; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) vet ./...; \
	done

generate: ## compile the BPF programs again (needs clang and llvm-strip 14)
	$(GO) generate ./tracing/bpf

clean: ## remove dist/ (results of runs are kept)
	rm -rf dist

# The directory of the benchmarks' files, on the device to be measured. Empty = a temporary directory.
CACHE_DIR ?=
# Trials: of `make scenarios` one by default, of `make gate` 8 of each side. With fewer, no loss can be shown once
# several numbers are compared; kvreport reports that.
COUNT ?=
OUT ?= kvbench-scenarios
# The window of each trial, of `make scenarios` 30 s by default.
TIME ?= 5s

# `make gate`: the revision to compare with, the benchmarks, the allowed loss, further flags of kvreport turns and gate, and
# parameters: sizes of the open division that overload a drive. They are environment variables, because some do not apply to
# every benchmark.
BASE ?= origin/main
SETTINGS ?= KVBENCH_DIVISION=open KVBENCH_MODEL=tiny-1b KVBENCH_NUM_USERS=16 KVBENCH_STORAGE_CAPACITY_GB=4
BENCH ?= ^BenchmarkStorageCeiling$$/op=(read|write|mixed)$$|^BenchmarkMaxStorageStress$$
MAX_REGRESS ?= 5%
FORMAT ?= text
GATE_OUT ?= kvbench-gate
TURNS_ARGS ?=
GATE_ARGS ?=
gate_count = $(or $(COUNT),8)
# A pattern from the command line may end in $, which must not begin a variable.
gate_bench = $(if $(filter file,$(origin BENCH)),$(BENCH),$(value BENCH))
gate_run = $(SETTINGS) "$$out/$(1).test" -test.run '^$$' -test.bench '$(gate_bench)' -test.count 1 -test.benchtime $(TIME) \
	-results-dir "$$out/$(1)" $(if $(CACHE_DIR),-cache-dir '$(CACHE_DIR)') $(ARGS)

# Old and new alternate, so that a change of the machine affects both. After a failed trial the others run, and the
# gate reports it. The commands are environment variables, which keep their quotes.
.PHONY: gate
gate: export OLD = $(call gate_run,old)
gate: export NEW = $(call gate_run,new)
gate: ## compare this tree with BASE (origin/main), taking turns (6 to 9 minutes); fails when it is worse or undecided
	@set -e; base=$$(git rev-parse --verify --quiet '$(BASE)^{commit}') || { \
		echo "make gate BASE=$(BASE): git knows no such revision here: name a commit, a branch or a tag (git fetch gets those of origin)" >&2; exit 2; }; \
	if [ "$$base" = "$$(git rev-parse HEAD)" ] && git diff --quiet HEAD; then \
		echo "make gate: this tree is $(BASE), without changes: nothing is to be compared" >&2; exit 2; fi; \
	if [ -e $(GATE_OUT)/new.txt ]; then rm -rf $(GATE_OUT).previous; mv $(GATE_OUT) $(GATE_OUT).previous; fi; \
	mkdir -p $(GATE_OUT); out=$$(cd $(GATE_OUT) && pwd); export out; \
	tree=$$(mktemp -d); trap 'git worktree remove --force "$$tree"; rm -rf "$$tree"' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
	git worktree add --quiet --detach "$$tree" '$(BASE)'; \
	echo "old: $(BASE), $$(git -C "$$tree" log -1 --format='%h %s'); new: this tree, $$(git rev-list --count '$(BASE)..HEAD') commits" \
		"later$$(git diff --quiet HEAD || echo ', with changes')" >&2; \
	echo "compiling both: the first time this takes about two minutes each" >&2; \
	(cd "$$tree" && r=$$(git rev-parse HEAD) && go test -c -ldflags "$(LAZY) -X kvbench/kvbench/result.revision=$$r \
		-X kvbench/kvbench/version.revision=$$r" -o "$$out/old.test" ./benchmarks); \
	$(GO) test -c -ldflags '$(LAZY) -X kvbench/kvbench/result.revision=$(REVISION)' -o "$$out/new.test" ./benchmarks; \
	$(GO) build -o "$$out/kvreport" ./tools/kvreport; \
	"$$out/kvreport" turns -old "$$OLD" -new "$$NEW" -count $(gate_count) -out "$$out" -max-regress '$(MAX_REGRESS)' \
		$(TURNS_ARGS) || { code=$$?; [ $$code = 1 ] || exit $$code; }; \
	"$$out/kvreport" gate -old "$$out/old.txt" -new "$$out/new.txt" -count $(gate_count) -max-regress '$(MAX_REGRESS)' \
		-format $(FORMAT) $(GATE_ARGS)

# `make proof` compares this tree with the commit before the redesign, unless BASE says another one.
STEPS ?=
.PHONY: proof
proof: export BASE := $(if $(filter file,$(origin BASE)),37e73fc6,$(BASE))
proof: export STEPS := $(STEPS)
proof: export CACHE_DIR := $(CACHE_DIR)
proof: ## what a redesign lost: this tree against BASE (37e73fc6), all of tools/proof or the STEPS named (an hour); not in .ci/run
	@tools/proof/run
