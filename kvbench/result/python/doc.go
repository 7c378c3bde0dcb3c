// Package python is the result file of the Python benchmark: its keys, in its types and its sense
// of them, for reading its results and for writing ours so that its tools read them.
//
//	python.go  Result, Summary and its sections, validation, storage health; the checkpoints'
//	           summary
//
// Names ending in _gb and _gbps hold GiB and GiB/s, _ms milliseconds. 0 stands where there was
// nothing, as there. Package result makes the numbers from its own. The source of every key is
// hazemawadalla/storage a56caea, folder kv_cache_benchmark.
//
// Values are plain data without locks.
package python
