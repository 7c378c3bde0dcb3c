package tiers

import (
	"context"
	"time"
)

// Files are the files of a tier. Their callers have the buffers and make the requests: package
// transfer, which makes a Tier of them, plain I/O and checkpoints.
//
// Create, Remove and Close never wait for other operations. Objects that lie next to each other share
// one Writer or Reader: its Len is the number of objects that it took, from the first one on and at
// least one. Errors concern the first object.
type Files interface {
	Traits() Traits
	// Create begins writing. Nothing can be opened until Commit. Objects with the same Key and Gen
	// must not exist.
	Create(ctx context.Context, objs ...Object) (Writer, error)
	// Open begins reading committed objects. It returns ErrNotFound if the first does not exist.
	Open(ctx context.Context, objs ...Object) (Reader, error)
	Remove(ctx context.Context, objs ...Object) error // see Tier
	Close() error                                     // see Tier
}

// Extent is a sequence of adjacent objects: object i begins Start(i) bytes after the first. Padding
// between an object's end and the next one's start is written like the objects.
type Extent interface {
	Len() int
	Start(i int) int64
}

// PartOf returns the number of the tier's part that holds the objects of a Reader or Writer. A tier
// over several directories has one part per directory; other tiers have only part 0.
func PartOf(x Submitter) int {
	if p, ok := x.(interface{ Part() int }); ok {
		return p.Part()
	}
	return 0
}

// Submitter accepts requests.
type Submitter interface {
	// Submit begins a request and does not wait for it, unless it is a copy of memory. Any number of
	// requests may be in flight.
	Submit(io *IO)
}

// Reader reads an extent.
type Reader interface {
	Extent
	Submitter
	// Close ends reading. It does not wait for requests in flight: the tier keeps their resources
	// until they complete. Closing twice is harmless.
	Close() error
}

// Writer writes an extent. Exactly one of Commit and Abort ends it; Abort after either does
// nothing.
type Writer interface {
	Extent
	Submitter
	// Commit makes all objects visible, and durable as far as the tier promises it, or none: if it
	// fails they are removed, as by Abort. All requests must have completed. When ctx ends it waits
	// for at most Grace.
	Commit(ctx context.Context) error
	// Abort removes the objects once the requests in flight have completed. It does not wait for
	// them.
	Abort() error
}

// Committed returns how many bytes the commit of a writer has moved to the device: n, the size of
// its objects, unless the writer collects objects in memory and writes several at once.
func Committed(w Writer, n int64) int64 {
	if c, ok := w.(interface{ Committed(n int64) int64 }); ok {
		return c.Committed(n)
	}
	return n
}

// Grace is how long a stopping caller waits for requests in flight. A device that works completes
// them within it. A device that hangs keeps the request and its buffer, and the other callers
// continue.
const Grace = time.Second

// Await waits for a value of done, and for at most Grace after the end of ctx. ok is false if there was
// none.
func Await[T any](ctx context.Context, done <-chan T) (v T, ok bool) {
	select {
	case v = <-done:
		return v, true
	case <-ctx.Done():
	}
	select {
	case v = <-done:
		return v, true
	case <-time.After(Grace):
		return v, false
	}
}

// IO is one request of an extent. From Submit to Done the request and its buffer belong to the tier,
// also when its caller no longer waits. It can be submitted again in and after Done.
type IO struct {
	// Buf holds the bytes. Where N is no multiple of Traits.Align (at the end of the extent), the
	// capacity of Buf reaches the next multiple: a write pads with the bytes between, and a read may
	// overwrite them.
	Buf Buffer
	Off int64 // from the extent's first byte
	N   int
	// Lane, from 1 on, groups requests: those of one lane share a queue of the I/O engine. 0: any queue.
	Lane int

	// Done is called once, on any goroutine, perhaps inside Submit. It may use the processor for a
	// while, but must not block.
	Done func(*IO)
	// Err is nil when all N bytes were moved: there are no partial results.
	Err error
	// Begun and Ended are the start and end of service at the device, on the run's clock: the
	// latency without queueing in this process. Both are zero if the tier does not know them.
	Begun, Ended time.Duration
	// Passed is when a thread of the imitated engine became free for the request; zero if the
	// request did not wait for one.
	Passed time.Duration
	// Memory is how many of the N bytes were copied from or to memory of the imitated engine.
	Memory int

	// State belongs to the tier, which keeps it from one use of the IO to the next so that a request
	// need not allocate.
	State any
}

// End completes the request; for tiers.
func (io *IO) End(err error) {
	io.Err = err
	io.Done(io)
}

// Buffer is memory that a request reads into or writes from.
type Buffer struct {
	B    []byte // nil: none, or memory of a device
	Slot int32  // registration of its arena with an I/O engine; 0 = none
	Node int16  // NUMA node or GPU
}

// OneObject is the Extent of a single object, for embedding.
type OneObject struct{}

// Len is 1.
func (OneObject) Len() int { return 1 }

// Start is 0.
func (OneObject) Start(int) int64 { return 0 }
