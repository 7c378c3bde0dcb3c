package tiers

import (
	"context"
	"io"
	"time"
)

// Object is one cached entry in a tier. Key and Gen together identify the bytes.
type Object struct {
	Key string
	// Gen is the write generation. A key that is evicted and written again gets another Gen, other
	// content and another name, so verification finds a stale read.
	Gen uint64
	// Size is in bytes, after tensor parallelism. It is never rounded: the tier adds its padding.
	Size int64
	// Layer is the number of the model's layer, or of the group of layers, counted from 1, if the
	// tier stores layers as objects of their own (Traits.Layers); 0 = all layers.
	Layer int
}

// ID identifies the bytes of an object.
type ID struct {
	Key   string
	Gen   uint64
	Layer int
}

// ID returns the object's identity without its size.
func (o Object) ID() ID { return ID{o.Key, o.Gen, o.Layer} }

// OfLayer returns one of n layers of an object as an object of its own. If n does not divide the
// size, some layers have one byte more than others.
func (o Object) OfLayer(layer, n int) Object {
	l, all := int64(layer), int64(n)
	o.Size, o.Layer = o.Size*l/all-o.Size*(l-1)/all, layer
	return o
}

// InLayers splits the object into n layers and returns the layers that have bytes. With n < 2 it
// returns the object itself.
func (o Object) InLayers(n int) []Object {
	if n < 2 {
		return []Object{o}
	}
	list := make([]Object, 0, n)
	for layer := 1; layer <= n; layer++ {
		if part := o.OfLayer(layer, n); part.Size > 0 {
			list = append(list, part)
		}
	}
	return list
}

// Tails says how much of each object is read. An object has len(Tails) equal parts. Part i is read
// from the last Tails[i] objects that a prompt finds; 0 = from all objects. Parts that fewer objects
// need come last, so a read is always a prefix of the object. Without Tails objects are read whole.
type Tails []int

// Of returns how many bytes are read of an object of that size. The object is the n-th from the end
// of the found objects; the last object has n = 1.
func (t Tails) Of(size int64, n int) int64 {
	if len(t) == 0 {
		return size
	}
	parts := 1 // a found object is always read, at least its first part
	for parts < len(t) && (t[parts] == 0 || n <= t[parts]) {
		parts++
	}
	some, all := int64(parts), int64(len(t))
	return size/all*some + size%all*some/all
}

// Traits are a tier's demands on requests, and facts about it. They do not change during its life.
type Traits struct {
	// Chunk is how many bytes one request should move; 0 = the run's chunk size.
	Chunk int
	// Align is the multiple of offset, length and address that requests need: 4096 or more for
	// direct I/O, else 1. It divides every chunk size in use. Only the last request of an extent may
	// be shorter, see IO.
	Align int
	// Extent is how many bytes several objects of one Create or Open span at most; 0 = the tier puts
	// no objects next to each other.
	Extent int64
	// Layers: objects move layer by layer, each layer as an object of its own (Object.OfLayer): the
	// first layer of all objects that move together, then the second. Remove and Lookup take whole
	// objects. 0 and 1 = objects move as a whole.
	Layers int
	// Stream: the tier is a Streamer and moves whole objects in small pieces. It also accepts
	// requests at offsets, for which it may hold a whole object in memory.
	Stream bool
	// Holds: the tier stores the bytes. A tier without Holds only takes the time of its requests.
	// Their buffers are empty: no content is generated or verified.
	Holds bool
	// CountsAtCommit: written bytes reach the device, and count, only when Commit returns.
	CountsAtCommit bool
	// Description is for people: "direct I/O on ext4", "simulated, 64.0 GiB/s".
	Description string
}

// Tier stores objects. It has no order of eviction and no capacity: the cache has both.
//
// All methods are safe for concurrent use. Create, Remove and Close never wait for other
// operations. Several objects in one call are neighbours of one request. Objects that lie next to
// each other in the tier share one Writer or Reader: its Len is the number of objects that it took,
// from the first one on and at least one. Errors concern the first object.
type Tier interface {
	Traits() Traits
	// Create begins writing. Nothing can be opened until Commit. Objects with the same Key and Gen
	// must not exist.
	Create(ctx context.Context, objs ...Object) (Writer, error)
	// Open begins reading committed objects. It returns ErrNotFound if the first does not exist.
	Open(ctx context.Context, objs ...Object) (Reader, error)
	// Remove deletes committed objects, also the objects after one that fails. Their space is free
	// when Remove returns, or for an object that is open for reading when the last reader closes.
	// It returns ErrNotFound for a missing object. A cancelled context does not stop a removal: it
	// is short, and must not stay half done.
	Remove(ctx context.Context, objs ...Object) error
	// Space returns errors.ErrUnsupported if the capacity is unknown.
	Space(ctx context.Context) (Space, error)
	// Close releases what the tier holds. Transfers must have ended. Closing twice is harmless.
	Close() error
}

// Space is the capacity of a tier in bytes, shared with all its other users.
type Space struct{ Total, Free int64 }

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

// Streamer is a Tier that moves whole objects as streams, as object stores do. The caller uses Put
// and Get if Traits.Stream is set. The tier chooses the size and number of its requests, attempts
// and the pauses between them. It never holds more of an object than the pieces in flight.
//
// The tier pulls bytes when it is ready to send them. Requests at offsets would deadlock: a stream
// that waits for the previous piece waits for ever if another stream holds the only buffer.
//
// Timing.Device is the time in which at least one request was in flight and waited neither for body
// nor for sink. The rest of the call belongs to body and sink.
type Streamer interface {
	Tier
	// Put writes an object and makes it visible as a whole when it returns nil. After an error
	// nothing of it remains, except in a store that does not respond. Body(off, n) begins a stream
	// of n bytes from off on. Put may call it for any range, repeatedly and concurrently; one
	// goroutine at a time uses each stream. After Put has returned because ctx ended, a stream may
	// still be read from.
	Put(ctx context.Context, o Object, body func(off, n int64) io.ReadSeeker, done ChunkFunc) (
		Timing, error)
	// Get reads an object. It passes each byte to sink once, in pieces of the buffers' size (the
	// last piece may be shorter), in any order and perhaps on several goroutines. Sink owns a piece
	// until it returns. An error of sink ends the read, and Get returns it. At most one request per
	// buffer is in flight; the caller owns bufs again when Get returns.
	Get(ctx context.Context, o Object, bufs []Buffer, sink func(p []byte, off int64) error,
		done ChunkFunc) (Timing, error)
	// Streams returns how many buffers Get can use for an object, at least 1.
	Streams(o Object) int
}

// Bounded is a Streamer that limits its requests in flight to the threads of an imitated engine.
type Bounded interface {
	// Unbounded returns the same tier without the limit, for transfers that the engine would not
	// make.
	Unbounded() Streamer
}

// Grace is how long a stopping caller waits for requests in flight. A device that works completes
// them within it. A device that hangs keeps the request and its buffer, and the other callers
// continue.
const Grace = time.Second

// IO is one request of an extent. From Submit to Done the request and its buffer belong to the tier,
// also when its caller no longer waits. It can be submitted again in and after Done.
type IO struct {
	// Buf holds the bytes. Where N is no multiple of Traits.Align (at the end of the extent), the
	// capacity of Buf reaches the next multiple: a write pads with the bytes between, and a read may
	// overwrite them.
	Buf Buffer
	Off int64 // from the extent's first byte
	N   int

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

// One is the Extent of a single object, for embedding.
type One struct{}

// Len is 1.
func (One) Len() int { return 1 }

// Start is 0.
func (One) Start(int) int64 { return 0 }

// AlignUp rounds n up to a multiple of align.
func AlignUp[T int | int64](n, align T) T { return (n + align - 1) / align * align }
