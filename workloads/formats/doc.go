// Package formats reads recorded traffic. Each format is a Format, whose Reader returns Rows with
// constant memory.
//
//	formats.go     Format, the files of a path, and their Identity; Row, Reader; Malformed, Tally, Usable:
//	               malformed rows, and the limit at which a file is refused
//	lines.go       lines of files, .gz and .zst unpacked; Table, CSV: comma-separated values by column
//	document.go    JSON value by value
//	readers.go     rowReader: any number of rows of each line, JSON document or record,
//	               also rows that come in another order
//	requests.go    Azure and BurstGPT: requests as comma-separated values
//	sharegpt.go    ShareGPT: recorded conversations, whose texts tokenizer.go counts
//	blocks.go      Blocks: the table of block traces, detected by the content of each file; their rows
//	mooncake.go, dynamo.go, kvevents.go
//	               block traces of JSON lines; Bailian's are in mooncake.go
//	sessions.go    sessions of agents, and of the agents that they start
//	lct.go         recordings of LMCache's storage manager, in msgpack
//	export.go      MooncakeWriter: writes any block trace as Mooncake's lines
//	validation.go  ReadValidation: a recorded run to compare with
//
// A new format of requests needs a file like requests.go. A new format of block traces needs a file
// like kvevents.go, and a line in blockFormats. All block traces have one flag, because the first object
// of a file shows the format, not the path. Package traces needs no changes.
//
// The package has no clock and no goroutines. One goroutine at a time uses a Reader. The caller of Open
// closes it.
package formats
