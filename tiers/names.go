package tiers

import "time"

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
func (k Kind) String() string { return [...]string{"gpu", "cpu", "storage"}[k] }

// Op is the direction of a transfer, seen from the tier.
type Op uint8

// The two directions.
const (
	Read Op = iota
	Write
	NumOps // the length of an array indexed by Op
)

// String returns "read" or "write".
func (o Op) String() string { return [...]string{"read", "write"}[o] }

// Phase says why bytes moved.
type Phase uint8

// The phases of the benchmark: writing an entry, reading it back, demoting it to the next tier.
const (
	Prefill Phase = iota
	Decode
	Evict
)

// String returns "Prefill", "Decode" or "Evict", as I/O traces spell them.
func (p Phase) String() string { return [...]string{"Prefill", "Decode", "Evict"}[p] }

// Timing splits the time of one operation. Device + Host is its I/O latency, which includes neither
// Generation nor Admission.
type Timing struct {
	// Device is the time in which the tier had at least one call of the operation in service:
	// create, chunk, flush or open. Concurrent chunks count once.
	Device time.Duration
	// Host is the rest of a read: verification. For writes it is 0, except with Transfer.FlushOnly.
	Host time.Duration
	// Generation is the rest of a write: content is generated and no request is in flight.
	Generation time.Duration
	// Admission is the wait for buffers. It ends before the other three begin.
	Admission time.Duration
	// Layers has, for a read from a tier with Traits.Layers, the clock's time at which each layer of
	// all objects was complete. Nil: the objects were read as a whole.
	Layers []time.Duration
}

// IO is the latency of the operation as the benchmark reports it: Device + Host.
func (t Timing) IO() time.Duration { return t.Device + t.Host }

// Add adds the times of another operation, except Layers.
func (t *Timing) Add(o Timing) {
	t.Device += o.Device
	t.Host += o.Host
	t.Generation += o.Generation
	t.Admission += o.Admission
}

// Chunk is a completed request to a tier, or the flush that ends a write.
type Chunk struct {
	Op    Op
	Flush bool // the call that makes a write durable: no request, but the device is busy with it
	// Piece: these bytes belong to a request that is still in flight. Negative Bytes take back
	// pieces that were reported before their request failed.
	Piece bool
	// Bytes are the bytes that count with this chunk. A tier with Traits.CountsAtCommit counts all
	// bytes with the flush and none with a request, any other tier the other way round.
	Bytes int64
	// Memory is the bytes copied from or to memory of the imitated engine; Bytes does not contain
	// them. It is negative at the commit that writes bytes which earlier commits left in memory:
	// the sum is what is still there.
	Memory int64
	// Retried: the request needed more than one attempt, so its time contains the pauses between them.
	Retried bool
	// Off is the offset in the object of a stream's write that the store has acknowledged.
	Off int64
	// Begun and Ended are the start and end of service at the device, on the run's clock. Submitted and
	// Completed are the submission to the tier and the completion by the tier. The gaps between the two
	// pairs are queueing and wake-ups in this process. A tier that does not know Begun and Ended sets
	// them to Submitted and Completed.
	Begun, Ended         time.Duration
	Submitted, Completed time.Duration
	// Held is the time before Submitted in which the request waited for a thread of the imitated
	// engine. Neither this process nor the device works on the request then.
	Held time.Duration
	// Part is the part of the tier that completed the request, see PartOf.
	Part int
}
