package tiers

import (
	"fmt"
	"time"
)

// Kind is a tier's place in the waterfall, fastest first.
type Kind uint8

// The three levels. A level of size 0 does not exist in a run, the others keep their numbers.
const (
	GPU Kind = iota
	CPU
	Storage
	NumKinds // the length of an array indexed by Kind
)

// String returns "gpu", "cpu" or "storage".
func (k Kind) String() string { return name(int(k), "Kind", "gpu", "cpu", "storage") }

// Op is the direction of a transfer, seen from the tier.
type Op uint8

// The two directions.
const (
	Read Op = iota
	Write
	NumOps // the length of an array indexed by Op
)

// String returns "read" or "write".
func (o Op) String() string { return name(int(o), "Op", "read", "write") }

// Phase says why bytes moved.
type Phase uint8

// The phases of the benchmark: writing an entry, reading it back, demoting it to the next tier.
const (
	Prefill Phase = iota
	Decode
	Evict
	NumPhases // the length of an array indexed by Phase
)

// String returns "Prefill", "Decode" or "Evict", as I/O traces spell them.
func (p Phase) String() string { return name(int(p), "Phase", "Prefill", "Decode", "Evict") }

func name(i int, kind string, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

// Timing is where the time of one operation went. Device + Host is its I/O latency; the others
// stand apart.
type Timing struct {
	// Device is the time in which at least one call of the operation was inside the tier: create,
	// chunks, flush, open. Parallel chunks count once.
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

// ChunkFunc is told of each chunk's completion, or once with all bytes when the tier counts them at
// commit (Traits.CountsAtCommit). It is called on goroutines of the tier, must be quick, and has
// returned for the last time when the operation returns.
type ChunkFunc func(op Op, bytes int64)
