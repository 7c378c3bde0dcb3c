package tiers

import "context"

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
// Calls block. The number of callers is the concurrency, and within one call the tier keeps requests
// in flight up to a depth of its own. All methods are safe for concurrent use. Remove and Close never
// wait for other operations. Several objects in one call are neighbours of one request.
type Tier interface {
	Traits() Traits
	// Put writes the first of the objects: those that lie next to each other in the tier, at least
	// one. They become visible together, and durable as far as the tier promises it. After an error,
	// a panic or the end of ctx nothing of them is left. Objects with the same Key and Gen must not
	// exist. After Put has returned because ctx ended, it may still call src.
	Put(ctx context.Context, c *Call, objs []Object, src Source) error
	// Get reads the first of the objects, as Put writes them. With Tails, the Size of an object may be
	// less than was written. It returns ErrNotFound if the first object does not exist, and errors of dst.
	Get(ctx context.Context, c *Call, objs []Object, dst Sink) error
	// Lookup looks up objects as an engine does before it reads them. It returns how many exist before
	// the first missing one, and errors.ErrUnsupported where no engine looks anything up.
	Lookup(ctx context.Context, objs ...Object) (found int, err error)
	// Remove deletes objects, also the objects after one that fails. Their space is free when Remove
	// returns, or for an object that is being read when the last reader has ended. It returns
	// ErrNotFound for a missing object. A cancelled context does not stop a removal: it is short, and
	// must not stay half done.
	Remove(ctx context.Context, objs ...Object) error
	// Close releases what the tier holds. Calls must have ended. Closing twice is harmless.
	Close() error
}

// Call is the report of one Put or Get. One caller at a time uses it, and may use it again.
type Call struct {
	// Observe, if not nil, gets each completed request. It is called for one request at a time, on
	// any goroutine, and not after Put or Get has returned. It must be quick.
	Observe func(Chunk)
	// Timing is the time of the call, also after an error. The removal of an interrupted write does
	// not count.
	Timing Timing
	// Done is how many objects the call concerned, from the first one on and at least one: all of
	// them have moved, or after an error none.
	Done int
}

// Source has the bytes of objects that are written. Fill writes the bytes of o from an offset on into
// p. A tier calls it for any range, repeatedly and concurrently. It must not wait, except for a tier
// without files. Beyond the end of an object it fills padding, which no reader gets.
type Source interface {
	Fill(o Object, off int64, p []byte) error
}

// Sink takes the bytes of objects that are read: each byte once, in pieces of any order, perhaps
// concurrently. It owns p until Take returns. It may use the processor for a while, but must not wait:
// a tier may call it where requests complete. An error ends the read.
type Sink interface {
	Take(o Object, off int64, p []byte) error
}

// Memory is a tier whose bytes are memory of this process.
type Memory interface {
	// View returns the bytes of an object, which stay until release. It returns ErrNotFound if the
	// object does not exist.
	View(o Object) (src Source, release func(), err error)
}

// Looker is Files whose engine looks up objects, see Tier.
type Looker interface {
	Lookup(ctx context.Context, objs ...Object) (found int, err error)
}

// FilesOf returns the files of a tier that keeps its objects in files, and nil for other tiers.
func FilesOf(t Tier) Files {
	if f, ok := t.(interface{ Files() Files }); ok {
		return f.Files()
	}
	return nil
}

// AlignUp rounds n up to a multiple of align.
func AlignUp[T int | int64](n, align T) T { return (n + align - 1) / align * align }
