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
