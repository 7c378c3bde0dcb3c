package tiers

import "time"

// Timing is where the time of one operation went. Device + Host is its I/O latency; the others stand apart.
type Timing struct {
	// Device is the time in which at least one call of the operation was inside the tier: create, chunks,
	// flush, open. Parallel chunks count once.
	Device time.Duration
	// Host is the rest of a read: verification. For writes it is 0, except with Transfer.FlushOnly.
	Host time.Duration
	// Generation is the rest of a write: data being made while nothing was in flight.
	Generation time.Duration
	// Admission is the wait for buffers, before any of the other clocks starts.
	Admission time.Duration
}

// IO is the latency of the operation as the benchmark reports it: Device + Host.
func (t Timing) IO() time.Duration { return t.Device + t.Host }

// ChunkFunc is told of each chunk's completion, or once with all bytes when the tier counts them at commit
// (Traits.BytesAtCommit) or has none (Traits.NoData). It is called concurrently by the goroutines of one
// operation, must be quick, and has returned for the last time when the operation returns.
type ChunkFunc func(op Op, bytes int64)
