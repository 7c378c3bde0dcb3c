package tiers

import (
	"time"
)

// Verify says how much of what is read is compared with what was written.
type Verify uint8

// The three depths of verification.
const (
	VerifyNone   Verify = iota // nothing
	VerifySample               // one 4 KiB block per chunk, at a place derived from key and offset
	VerifyFull                 // every byte
)

// String returns "none", "sample" or "full", the values of -verify.
func (v Verify) String() string { return name(verifyNames[:], int(v), "Verify") }

var verifyNames = [...]string{VerifyNone: "none", VerifySample: "sample", VerifyFull: "full"}

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

// Transfer moves entries in chunks between their content and a tier, and measures. It is plain settings: one
// Transfer serves all workers at once.
type Transfer struct {
	Pool    *Pool    // where the chunks' buffers come from; its buffers hold at least Chunk bytes
	Content *Content // what is written, and what reads are compared with
	Chunk   int      // bytes per request to a tier: a multiple of 4096
	Depth   int      // chunks of one operation in flight at the same time, at least 1
	Verify  Verify
	// FlushOnly makes Device of a write the flush alone and calls the rest of the time inside the tier Host,
	// as the Python benchmark does with buffered writes.
	FlushOnly bool
	// Now is the clock, e.g. time since the run's start. Required.
	Now func() time.Duration
}
