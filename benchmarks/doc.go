// Package benchmarks is the front door of kvbench: one Benchmark function per
// workload, to be run with go test.
//
//	go test ./benchmarks -run '^$' -bench MaxStorageStress -cache-dir /mnt/nvme/kv
//
// Go's own flags keep their meaning; -help-parameters lists ours with the
// values in force. One call of a benchmark function is one trial: Main sets
// -test.benchtime to 1x after reading it, so that nothing is ever run twice.
//
// The package joins parameters, engine and output. It measures nothing itself.
package benchmarks
