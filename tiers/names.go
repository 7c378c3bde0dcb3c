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
	// Layers is when each layer of all objects had come, on the clock, of a read from a tier with
	// Traits.Layers; nil: they came as a whole.
	Layers []time.Duration
}

// IO is the latency of the operation as the benchmark reports it: Device + Host.
func (t Timing) IO() time.Duration { return t.Device + t.Host }

// Chunk is a request to a tier that is complete, or the flush that ends a write.
type Chunk struct {
	Op    Op
	Flush bool // what makes a write durable: no request, but the device is busy with it
	// Piece: these bytes came with a request that is still under way, or, where they are negative,
	// came for nothing: the request that they were told with has failed later.
	Piece bool
	// Bytes are those that count with it: of a tier that counts them at the commit
	// (Traits.CountsAtCommit) all with the flush and none with a request, else the other way round.
	Bytes int64
	// Memory is the bytes that were copied from or to memory of the engine that the tier imitates,
	// and so none of Bytes. Negative at the commit that writes what earlier ones left there: the
	// sum is what is left.
	Memory int64
	// Off is where they begin in the object, of a stream's write that the store has acknowledged.
	Off int64
	// Begun and Ended are when the tier had it at the device, by the clock of the run; where it
	// does not know that, the same as the next two: when the tier was asked, and had answered. What
	// lies between them and those is this process: queueing, wake-ups.
	Begun, Ended time.Duration
	Asked, Done  time.Duration
	// Held is how long before it was Asked the tier held it back for the engine that it imitates,
	// which has but so many threads: no work of this process, and not at the device.
	Held time.Duration
	// Part is that of the tier which had it, see PartOf.
	Part int
}

// ChunkFunc is told of each chunk's completion. It is called on goroutines of the tier, must be
// quick, and has returned for the last time when the operation returns.
type ChunkFunc func(Chunk)
