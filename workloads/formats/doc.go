// Package formats reads recorded traffic: each format is a Format, whose Reader returns Rows with constant
// memory.
//
//	formats.go    Format, the files of a path, and their Identity; Row, Reader; Malformed, Tally:
//	              malformed rows, and the limit at which a file is refused
//	requests.go   Azure and BurstGPT: requests as comma-separated values
//	blocks.go     Blocks: block traces, detected by the content of each file; their rows
//	mooncake.go   the JSON lines of Mooncake and of Bailian
//	dynamo.go     Dynamo's request traces
//	kvevents.go   events of GPUs' caches, as vLLM, SGLang and Dynamo publish them
//	lct.go        recordings of LMCache's storage manager, in msgpack.go's msgpack
//	sessions.go   sessions of agents, and of the agents that they start
//	export.go     MooncakeWriter: writes any block trace as Mooncake's lines
//	sharegpt.go   ShareGPT: recorded conversations, whose texts tokenizer.go counts
//	validation.go ReadValidation: a recorded run to compare with
//	lines.go      lines of files, .gz and .zst unpacked, and comma-separated values by column;
//	              also for package iotrace
//	document.go   JSON value by value
//
// The readers of all block traces are in this package, because their format is detected by the first object
// of a file, not by its path.
//
// A new format is a file like requests.go; package traces needs no changes. The package has no clock and no
// goroutines. A Reader belongs to one goroutine at a time; the caller of Open closes it.
package formats
