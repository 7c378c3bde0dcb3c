// Package benchmarks is the command line of kvbench: one Benchmark function per workload, to be run
// with go test.
//
//	go test ./benchmarks -run '^$' -bench MaxStorageStress -cache-dir /mnt/nvme/kv
//
// Go's own flags keep their meaning; -help-parameters lists ours with the values in force. The
// package joins parameters, engine and output; but for DataGen it measures nothing itself. In
// reading order:
//
//	workloads_test, plain_test, checkpoint_test, datagen_test   the benchmark functions
//	main       TestMain's body: checks, header, run, exit code; commandline: the flags
//	select     which benchmarks, points of a sweep and trials -bench, -skip, -count and -cpu mean;
//	           pattern: -bench and -skip as the testing package reads them
//	run        one trial: engine, files, the benchmark line
//	engines    the turns of Engines; ranking: the table of its lines
//	config     values in force → configuration of the engine, with layout, sources, simulate,
//	           and checkpoint for those; bucket: an object store as the storage tier; room: how
//	           large a cache can be where it lies
//	output     what benchstat reads before, and a person after, the run
//	terminal   the line during it
//	unwritten  the result of a trial until it is safe
//	asking     questions to files and directories that may never answer
//	signals    what ends a run early; launch: where the command was typed
//	metrics/   what a run does while it does it, for Prometheus
//	clients/   several clients: who starts them, and how their results become one
//
// One call of a benchmark function is one trial: Main sets -test.benchtime to 1x after reading it,
// so that nothing is ever run twice. Benchmarks run one after another on the testing package's
// goroutine and share the session of the process (current) without a lock; nothing may be printed
// while one runs, or its line is lost.
//
// This package is large because the testing package finds benchmark functions in one package only,
// and what all of them need between the flags and the engine stands beside them.
package benchmarks
