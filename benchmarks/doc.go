// Package benchmarks is the command line of kvbench: one Benchmark function per workload, run with
// go test.
//
//	go test ./benchmarks -run '^$' -bench MaxStorageStress -cache-dir /mnt/nvme/kv
//
// Go's own flags keep their meaning; -help-parameters lists ours with the values in force. The
// package joins parameters, engine and output; except for DataGen it measures nothing itself. In
// reading order:
//
//	workloads_test, plain_test, checkpoint_test, datagen_test   the benchmark functions and the suite
//	main       TestMain's body: plan, header, run, exit code; commandline: the flags
//	plan       what is going to run: the lines that -bench and -skip select at each point of a
//	           sweep, the trials of each, and their order
//	run        one trial: engine, files, the benchmark line
//	config     values in force → the configuration of a trial and the load of requests, with sources
//	           and simulate; checkpoint: that of checkpoints
//	storage    values in force → the tiers; bucket: an object store as the storage tier
//	checks     what must hold on this machine before a run, and what its results warn of
//	output     what benchstat reads before, and a user after, the run; ranking: the table of Engines
//	terminal   the line during it
//	hang       files and directories that may never answer
//	signals    what ends a run early; launch: where the command was typed
//	metrics    the progress of a run for Prometheus: the endpoint; metrics_series: the state of each
//	           benchmark and rank; metrics_families: their values, with names, units and help
//	ranks      several ranks: a run and its trials, step by step; ranks_meet: how they find each other;
//	           ranks_merged: one result of all ranks, written next to theirs, and the run's summary
//
// A new benchmark is a row in the table of package params, a function BenchmarkX that calls run, and,
// unless it replays requests, its parts in the suite.
//
// The testing package finds the functions, prints the lines, and calls a function once for each trial:
// Main makes the plan and sets the testing package's flags to it (-test.benchtime 1x, so that nothing is
// run twice). Benchmarks run one after another and share the session of the process (current) without a
// lock; nothing may be printed while one runs, or its line is lost.
package benchmarks
