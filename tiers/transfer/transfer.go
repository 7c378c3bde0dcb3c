package transfer

import (
	"time"

	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
)

// Transfer moves entries in chunks between their content and a tier, and measures. It is plain settings: one
// Transfer serves all workers at once.
type Transfer struct {
	Pool    *buffer.Pool     // where the chunks' buffers come from; its buffers hold at least Chunk bytes
	Content *content.Content // what is written, and what reads are compared with
	Chunk   int              // bytes per request to a tier: a multiple of 4096
	Depth   int              // chunks of one operation in flight at the same time, at least 1
	Verify  content.Verify
	// FlushOnly makes Device of a write the flush alone and calls the rest of the time inside the tier Host,
	// as the Python benchmark does with buffered writes.
	FlushOnly bool
	// Now is the clock, e.g. time since the run's start. Required.
	Now func() time.Duration
}
