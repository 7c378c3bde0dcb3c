package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
)

// Times in samples are offsets on the engine's clock, the same clock that is given to
// [Recorder.Open]. A sample is passed by value and not kept, so callers may reuse theirs.

// OpSample is one cache operation that moved an entry: a read, a write, or one half of a demotion.
// Its bytes are not counted from here but from [Recorder.Chunk], so that work cut off at the
// deadline still counts what it moved.
type OpSample struct {
	At      time.Duration // when it completed
	Shard   int           // any number: worker index
	Level   tiers.Kind
	Op      tiers.Op
	Phase   tiers.Phase // Evict marks a demotion
	Purpose workloads.Purpose
	Bytes   int64 // of the whole entry, or of all blocks of a run
	First   bool  // a read: the first of this entry, or of any block of a run
	Again   int64 // of a first read's bytes: those of blocks that had been read before
	Blocks  int   // blocks of a run; 0 and 1: one entry

	tiers.Timing // IO of it is the latency of the operation; its Admission waited for buffers

	Slot  time.Duration // waiting for the write limit
	Space time.Duration // waiting for room
	// Cleared is the part of Space in which others were deleted and demoted
	Cleared time.Duration
	// a read waiting for the entry's writer, or a writer that joined another
	Pending time.Duration

	// Partial: cancelled at the deadline. It adds to the stage sums and to the count of cancelled
	// operations, whatever At says, and to no histogram.
	Partial bool
	// Failed: it was given up after a failure, which is counted by itself. Of the other fields only
	// Shard is used.
	Failed bool
}

// RequestSample is one finished request.
type RequestSample struct {
	At    time.Duration
	Shard int
	Class workloads.Class

	Storage time.Duration // sum of IO over its operations
	// Time is all of its time and the parts that are known; Recorder.Request makes the rest of it.
	Time result.RequestTime

	GenerateTokens int
	ContextTokens  int

	// Failed: one of its operations failed. It is counted apart and adds no latency and no tokens.
	Failed bool
}

// BlockSample is what was decided about the blocks of one request, as a sum of many has it.
type BlockSample struct {
	At    time.Duration
	Shard int
	result.BlockCache
	Ideal int // the prefix in a cache without bounds, negative: not known
}

// What one decision about one key found. Pending counts as a hit; NotYetWritten is counted apart
// from hits and misses; Gone is a miss that the metadata had promised as a hit.
var (
	Hit           = result.LookupCount{Hits: 1}
	Pending       = result.LookupCount{Hits: 1, Pending: 1}
	Miss          = result.LookupCount{Misses: 1}
	Gone          = result.LookupCount{Misses: 1, Gone: 1}
	NotYetWritten = result.LookupCount{NotYetWritten: 1}
)

// Live is a snapshot of the counters for the progress line: what completed inside the window so
// far.
type Live struct {
	Bytes    [tiers.NumKinds][tiers.NumOps]int64
	Requests int64
	Failures int64
}

// Gauge is a reading of what cannot be summed: queue length and tier fill. The engine takes one
// about as often as the progress line and at least once per timeline interval.
type Gauge struct {
	Queued   int64                 // requests arrived and not taken
	InFlight int64                 // requests taken and not done
	Bytes    [tiers.NumKinds]int64 // fill of each tier
}
