// Package python defines the result file of the Python benchmark, with its keys, types and
// definitions. It reads the Python benchmark's results, and writes results that the Python
// benchmark's tools can read.
//
//	python.go  Result, Summary and its sections, validation, storage health; the checkpoints'
//	           summary
//
// Keys that end in _gb are in GiB, _gbps in GiB/s, _ms in milliseconds. A value without data is 0.
// Package result fills in the numbers. The source of every key is hazemawadalla/storage a56caea,
// folder kv_cache_benchmark.
//
// Values are plain data without locks.
package python
