package tiers

import (
	"context"
	"io"
	"time"
)

// Object is one cached entry as tiers know it. Key and Gen together name the bytes; Size is their
// number.
type Object struct {
	Key string
	// Gen is the write generation: which write of this run made the entry. A key that is evicted
	// and written again gets another Gen, other content and another name, so a stale read cannot
	// look like a good one.
	Gen uint64
	// Size is in bytes, after tensor parallelism. It is never rounded: padding is the tier's own
	// affair.
	Size int64
	// Layer is which one of a model's layers this is, counted from 1, of an object that is kept
	// layer by layer, see Traits.Layers, or which group of them; 0 = all of them.
	Layer int
}

// ID names the bytes of an object.
type ID struct {
	Key   string
	Gen   uint64
	Layer int
}

// ID is what two descriptions of the same bytes have in common.
func (o Object) ID() ID { return ID{o.Key, o.Gen, o.Layer} }

// OfLayer is one of n layers of an object as an object of its own. Where the bytes cannot be
// divided evenly some have one more than others.
func (o Object) OfLayer(layer, n int) Object {
	l, all := int64(layer), int64(n)
	o.Size, o.Layer = o.Size*l/all-o.Size*(l-1)/all, layer
	return o
}

// InLayers is the object taken apart into n layers, those of them that have bytes; of fewer than
// two it is the object itself.
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

// Tails is what is read of objects in as many equal parts: part i of so many of the last ones that
// a prompt finds, 0 = of all. Parts that fewer need come last, so that what is read of an object
// are its first bytes. Without any, objects are read whole.
type Tails []int

// Of is how many bytes are read of an object of so many, which is the n-th from the end of what was
// found, the last being the first.
func (t Tails) Of(size int64, n int) int64 {
	if len(t) == 0 {
		return size
	}
	parts := 1 // nobody finds an object and reads none of it
	for parts < len(t) && (t[parts] == 0 || n <= t[parts]) {
		parts++
	}
	some, all := int64(parts), int64(len(t))
	return size/all*some + size%all*some/all
}

// Traits are what a tier wants of whoever moves bytes into and out of it. They do not change during
// its life.
type Traits struct {
	// Chunk is how many bytes one request should move; 0 = as many as the run's chunk size.
	Chunk int
	// Align is the multiple of offset, length and address that requests need: 4096 or more for
	// direct I/O, else
	// 1. It divides every chunk size in use; only the last request of an extent may be shorter, see
	// IO.
	Align int
	// Extent is how many bytes the objects of one Create or Open span at most, unless it is a
	// single one; 0 = the tier puts no objects side by side.
	Extent int64
	// Layers: of objects that are moved each of so many layers is one of its own (Object.OfLayer),
	// first the first layer of all that move together, then the second. Remove and look-ups take
	// whole ones. 0 and 1 = they move as a whole.
	Layers int
	// Stream: the tier is a Streamer, and takes and gives whole objects in small pieces. Requests
	// at offsets are its second best: it may keep all of an object in memory for them.
	Stream bool
	// Holds: the tier keeps the bytes. One that does not takes the time of its requests, whose
	// buffers are empty: nothing is generated for it and nothing verified.
	Holds bool
	// CountsAtCommit: written bytes have reached the device only when Commit returns, and count
	// then.
	CountsAtCommit bool
	// Description is for people: "direct I/O on ext4", "simulated, 64.0 GiB/s".
	Description string
}

// Tier is a place where objects live. It keeps no order of its own, and no capacity: a cache does.
//
// All methods are safe for concurrent use. Create, Remove and Close never wait for other
// operations. Several objects in one call are neighbours of one request; those that the tier has
// side by side share one Writer or Reader, whose Len says how many it took of them, the first ones
// and at least one. Errors are those of the first.
type Tier interface {
	Traits() Traits
	// Create begins writing. Nothing can be opened until Commit. Objects with the same Key and Gen
	// must not exist.
	Create(ctx context.Context, objs ...Object) (Writer, error)
	// Open begins reading committed objects. ErrNotFound when the first is none.
	Open(ctx context.Context, objs ...Object) (Reader, error)
	// Remove deletes committed objects, also those behind one that fails. Their space is free when
	// Remove returns, unless they are still open for reading: then when the last reader closes.
	// ErrNotFound where there is none. A cancelled context does not stop a removal, which is short
	// and leaves nothing half done.
	Remove(ctx context.Context, objs ...Object) error
	// Space is errors.ErrUnsupported where nobody can say.
	Space(ctx context.Context) (Space, error)
	// Close releases what the tier holds. Transfers must have ended. Closing twice is harmless.
	Close() error
}

// Space is the room of a tier in bytes, whoever uses it.
type Space struct{ Total, Free int64 }

// Extent is objects side by side: object i begins Start(i) bytes after the first. Between an
// object's end and the next one's start lies padding, which is written like the rest.
type Extent interface {
	Len() int
	Start(i int) int64
}

// PartOf is the number of that part of a tier in which the objects of a Reader or Writer lie: 0 but
// for tiers that are made of several, as several directories.
func PartOf(x Submitter) int {
	if p, ok := x.(interface{ Part() int }); ok {
		return p.Part()
	}
	return 0
}

// Submitter takes requests.
type Submitter interface {
	// Submit begins a request and does not wait for it, unless it is a copy of memory. Any number
	// may be under way.
	Submit(io *IO)
}

// Reader reads an extent.
type Reader interface {
	Extent
	Submitter
	// Close ends reading. It does not wait for requests under way: what they use is kept until they
	// are done. Closing twice is harmless.
	Close() error
}

// Writer writes an extent. Exactly one of Commit and Abort ends it; Abort after either does
// nothing.
type Writer interface {
	Extent
	Submitter
	// Commit makes the objects durable as far as the tier promises it, and visible, all of them or
	// none: if it fails they are gone, as after Abort. All requests must be done. When ctx ends it
	// waits for at most Grace.
	Commit(ctx context.Context) error
	// Abort gives up: nothing of the objects remains in the tier, once requests still under way are
	// done. It does not wait for these.
	Abort() error
}

// Committed is how many bytes have come to the device with the commit of a writer. They are n,
// those of its objects, but for one that keeps them in memory until it has enough of them.
func Committed(w Writer, n int64) int64 {
	if c, ok := w.(interface{ Committed(n int64) int64 }); ok {
		return c.Committed(n)
	}
	return n
}

// Streamer is a Tier whose objects come and go as streams, as those of object stores do: whoever
// moves bytes to one with Traits.Stream calls Put and Get. What lies between, requests of whatever
// size and number, attempts and the pauses between them, is the tier's own affair. It never holds
// more of an object than the pieces under way.
//
// Why not requests at offsets: a stream that has to wait for the piece before it waits for ever
// where another one holds the only place. So the tier asks for bytes, as it comes to send them.
//
// The Timing is that of the tier: Device is the time in which at least one request was under way
// and waited neither for body nor for sink. The rest of the call is theirs.
type Streamer interface {
	Tier
	// Put makes an object, visible as a whole when it returns nil; else nothing of it remains, but
	// what a store that does not answer keeps. Body(off, n) begins a stream of n bytes of the
	// object from off on: of any range, as often as asked, several side by side, each for one
	// goroutine at a time. One may still be read from when Put has returned because ctx ended.
	Put(ctx context.Context, o Object, body func(off, n int64) io.ReadSeeker, done ChunkFunc) (
		Timing, error)
	// Get reads an object. Sink is given each byte of it once, in whole pieces of the size of the
	// buffers but for the last, in any order and perhaps from several goroutines; a piece is its
	// own until it returns. What it returns ends the read and is returned. One request at most
	// is under way for each of bufs, which are the caller's again when Get returns.
	Get(ctx context.Context, o Object, bufs []Buffer, sink func(p []byte, off int64) error,
		done ChunkFunc) (Timing, error)
	// Streams is how many buffers Get can use for an object, at least 1.
	Streams(o Object) int
}

// Bounded is a Streamer that has no more requests under way than an engine that it imitates.
type Bounded interface {
	// Unbounded is the same tier without that bound, for what is nobody's request.
	Unbounded() Streamer
}

// Grace is for how long those who stop wait for requests under way. A device that answers at all
// does so within it; one that does not keeps the request and its buffer, and everybody else goes
// on.
const Grace = time.Second

// IO is one request of an extent. From Submit to Done it and its buffer belong to the tier, also
// when nobody waits for it any more. It can be used again after Done, and within.
type IO struct {
	// Buf holds the bytes. Where N is no multiple of Traits.Align (the end of the extent), its
	// capacity reaches the next one: what lies between is written as padding, and may be
	// overwritten by a read.
	Buf Buffer
	Off int64 // from the extent's first byte
	N   int

	// Done is called once, on any goroutine, perhaps inside of Submit. It may use the processor for
	// a while, but not block.
	Done func(*IO)
	// Err is nil when all N bytes were moved: there are no partial results.
	Err error
	// Begun and Ended are when the device had the request, by the clock of the run: its latency,
	// without queueing in this process. Both are zero where the tier does not know.
	Begun, Ended time.Duration
	// Passed is when the tier let it pass to the device, which it had held back until then because
	// the engine that it imitates has no more threads; zero where it did not.
	Passed time.Duration
	// Memory is how many of the N bytes were in memory of the engine that the tier imitates.
	Memory int

	// State is the tier's own, kept from one use of the IO to the next, so that a request need not
	// allocate.
	State any
}

// End completes the request; for tiers.
func (io *IO) End(err error) {
	io.Err = err
	io.Done(io)
}

// Buffer is memory that requests move bytes through.
type Buffer struct {
	B    []byte // nil: none, or memory of a device
	Slot int32  // the registration of its arena with an engine; 0 = none
	Node int16  // NUMA node or GPU
}

// One is the Extent of a single object, to be embedded.
type One struct{}

// Len is 1.
func (One) Len() int { return 1 }

// Start is 0.
func (One) Start(int) int64 { return 0 }

// AlignUp rounds n up to a multiple of align.
func AlignUp[T int | int64](n, align T) T { return (n + align - 1) / align * align }
