package main

import (
	"errors"
	"io"

	"kvbench/tools/aggregate"
	"kvbench/tools/command"
)

var aggregateCommand = command.Command{
	Name:  "aggregate",
	Args:  "DIR [-o FILE]",
	Short: "one summary over the ranks and trials of a results directory",
	Long: `
Reads every <option_O or benchmark>/trial_<T>/rank_<N>/kvcache_results_*.json below DIR, of ours or of the Python benchmark,
and writes kvcache_run_summary_<start>.json into DIR, or to FILE (- is standard output).

Within a trial bandwidths and token rates of the storage tier are summed over the ranks; then the mean over the trials is
taken. Device p95 is the maximum over all ranks and trials. These are the aggregated_ keys of MLPerf Storage. Beside them
stand what they hide: each trial, median and spread, the bandwidth while all ranks were measuring (common_window, from
their timelines) with the skew of their starts, and percentiles of the merged histograms.

A rank without a complete result makes a partial failure: its path stands in missing_files, and the sums lack it. Ranks
served wholly from memory (storage_entries 0) are listed in cpu_tier_ranks; an option where all are is invalid. Results
that differ in I/O mode, decode reads, write-device definition or any parameter are refused, and so are simulated results
among measured ones.

Exit codes: 0 done, 1 written but partial or invalid, 2 nothing was written.`,
	Example: `
mpirun -np 8 ./kvbench.test -test.bench MaxStorageStress -test.count 3 -cache-dir /mnt/kv -results-dir results
go tool kvreport aggregate results
go tool kvreport aggregate results -o - | jq '.options["1"].aggregated_read_bandwidth_gbps'`,
	Run: runAggregate,
}

func runAggregate(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := command.Flags("aggregate")
	out := fs.String("o", "", "")
	dirs, err := command.Parse(fs, args)
	if err == nil && len(dirs) != 1 {
		err = errors.New("one results directory is needed, for example: kvreport aggregate kvbench-results/20260908-120000-4711")
	}
	if err != nil {
		return command.Fail(stderr, "aggregate", err)
	}
	good, err := aggregate.Run(dirs[0], *out, stdout, stderr)
	if err != nil {
		return command.Fail(stderr, "aggregate", err)
	}
	if !good {
		return command.No
	}
	return command.Done
}
