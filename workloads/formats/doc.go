// Package formats reads recorded traffic: each format is a Format, whose Reader gives Rows with
// constant memory.
//
//	formats.go    Format, the files that a path means, and their Identity; Row, Reader; Malformed,
//	              Tally: which rows are refused, when a file is
//	requests.go   Azure and BurstGPT: requests as comma-separated values
//	blocks.go     Blocks: block traces, detected by the content of each file; their rows
//	mooncake.go   the JSON lines of Mooncake and of Bailian
//	dynamo.go     Dynamo's request traces
//	kvevents.go   events of GPUs' caches, as vLLM, SGLang and Dynamo publish them
//	lct.go        recordings of LMCache's storage manager, in msgpack.go's msgpack
//	sessions.go   sessions of agents, and of the agents that they start
//	export.go     MooncakeWriter: any of them as Mooncake's lines
//	sharegpt.go   ShareGPT: recorded conversations, whose texts tokenizer.go counts
//	validation.go ReadValidation: a recorded run to compare with
//	lines.go      lines of files, .gz and .zst unpacked, and comma-separated values by column;
//	              also for package iotrace
//	document.go   JSON value by value
//
// This package is large because a path does not tell which format it is of: all block traces are
// detected by one look at their first object, so that their readers lie together.
//
// A new format is a file like requests.go; package traces needs to know no more of it. Nothing here
// has a clock or a goroutine. A Reader belongs to one goroutine at a time, the caller that opened
// it closes it.
package formats
