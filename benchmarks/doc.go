// Package benchmarks is the command line of kvbench: one Benchmark function per workload, run with go
// test.
//
//	go test ./benchmarks -run '^$' -bench MaxStorageStress -cache-dir /mnt/nvme/kv
//
// Go's own flags keep their meaning. -help-parameters lists kvbench's flags with the values in force. The
// package connects the parameters, the trials (package kvbench) and the output. Except for DataGen it
// measures nothing itself. In reading order:
//
//	workloads_test, plain_test, checkpoint_test, datagen_test   the benchmark functions and the suite
//	main       TestMain's body: plan, header, run, exit code; commandline: the flags
//	selection  the benchmarks of -bench, or of the jobs of a scenario (scenarios: the built-in ones)
//	plan       what the run will do: the lines that -bench and -skip select at each point of a
//	           sweep, the trials of each line, and their order
//	run        one trial: package kvbench's Run, the result files, the benchmark line
//	config     makes the configuration of a trial and the load of inference requests from the values in
//	           force, with sources and simulate; checkpoint: the same for checkpoints
//	storage    makes the tiers from the values in force; bucket: an object store as the storage tier
//	checks     the conditions on this machine before a run, and the warnings in its results
//	output     the lines for benchstat before the run, and for the user after it
//	screen     what a terminal shows instead of the lines for benchstat
//	terminal   the live line during the run
//	hang       calls on files and directories that may never return
//	signals    what ends a run early; launch: the working directory of the user's command
//	metrics    the progress of a run for Prometheus: the endpoint; metrics_series: the state of each
//	           benchmark and rank; metrics_families: their values, with names, units and help
//	ranks      several ranks: a run and its trials, step by step; ranks_meet: how ranks find each other;
//	           ranks_merged: one result of all ranks, next to the ranks' results, and the run's summary
//
// A new benchmark is a row in the table of package params, a function BenchmarkX that calls run, and,
// unless it replays requests, its parts in the suite.
//
// The testing package finds the functions, prints the lines, and calls a function once per trial. Main
// makes the plan, and sets the testing package's flags for the plan (-test.benchtime 1x, so that each trial
// runs once). Benchmarks run one after another, and use the session of the process (current) without a
// lock. Print nothing while a benchmark runs, because the output would break the benchmark's line.
package benchmarks
