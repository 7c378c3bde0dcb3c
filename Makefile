# Where the benchmarks keep their files: a directory on the device to be measured. Empty = a temporary directory.
CACHE_DIR ?=
# Trials of each benchmark: four differ significantly at best, six are a good number.
COUNT ?= 6
OUT ?= kvbench-tiers

bench_flags = -run '^$$' -count $(COUNT) $(if $(CACHE_DIR),-cache-dir $(CACHE_DIR))

# Each tier alone, all of them together, and a production mix: three runs of the suite and one page.
.PHONY: tiers
tiers:
	mkdir -p $(OUT)
	go test ./benchmarks $(bench_flags) -bench '^Benchmark(StorageCeiling|Tier)$$' -results-dir $(OUT)/results > $(OUT)/alone.txt
	go test ./benchmarks $(bench_flags) -bench '^BenchmarkMaxStorageStress$$' -gpu-mem-gb 0.25 -cpu-mem-gb 0.5 -results-dir $(OUT)/results > $(OUT)/together.txt
	go test ./benchmarks $(bench_flags) -bench '^Benchmark(MultiTurn|Synthetic)$$' -cpu-mem-gb 0.5 -num-users 16 -results-dir $(OUT)/results > $(OUT)/mix.txt
	cat $(OUT)/alone.txt $(OUT)/together.txt $(OUT)/mix.txt > $(OUT)/tiers.txt
	go tool kvreport html $(OUT)/tiers.txt -o $(OUT)/tiers.html
	go tool kvreport xlsx $(OUT)/tiers.txt -o $(OUT)/tiers.xlsx
	@echo "open $(OUT)/tiers.html"

# What `make gate` compares this tree with, what it runs, how often, and what may be lost.
BASE ?= origin/main
BENCH ?= ^Benchmark(StorageCeiling|MaxStorageStress)$$
MAX_REGRESS ?= 5%
FORMAT ?= text
GATE_OUT ?= kvbench-gate

# Old and new take turns, so that what drifts on the machine meets both; a run of its own per turn.
.PHONY: gate
gate:
	@set -e; mkdir -p $(GATE_OUT); out=$$(cd $(GATE_OUT) && pwd); rm -f "$$out/old.txt" "$$out/new.txt"; \
	tree=$$(mktemp -d); trap 'git worktree remove --force "$$tree"; rm -rf "$$tree"' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
	git worktree add --quiet --detach "$$tree" '$(BASE)'; \
	(cd "$$tree" && go test -c -o "$$out/old.test" ./benchmarks); \
	go test -c -o "$$out/new.test" ./benchmarks; \
	for turn in $$(seq $(COUNT)); do for side in old new; do \
		echo "make gate: $$side, turn $$turn of $(COUNT)" >&2; \
		"$$out/$$side.test" -test.run '^$$' -test.bench '$(BENCH)' -test.count 1 -results-dir "$$out/$$side" \
			$(if $(CACHE_DIR),-cache-dir '$(CACHE_DIR)') $(ARGS) >> "$$out/$$side.txt"; \
	done; done; \
	go tool kvreport gate -old "$$out/old.txt" -new "$$out/new.txt" -max-regress '$(MAX_REGRESS)' -format $(FORMAT)
