// Package python is the part of a result that the Python benchmark's tools read: its keys, in its
// types and its sense of them.
//
//	python.go  Summary and its sections, validation, storage health; the checkpoints' summary
//
// Names ending in _gb and _gbps hold GiB and GiB/s, _ms milliseconds. 0 stands where there was
// nothing, as there. Package record makes the numbers, package result those that are made of its
// own; our reports read the other sections of a result. The source of every key is
// hazemawadalla/storage a56caea, folder kv_cache_benchmark.
//
// Values are plain data without locks.
package python
