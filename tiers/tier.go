package tiers

import (
	"context"
	"fmt"
)

// Kind is a tier's place in the waterfall, fastest first.
type Kind uint8

// The three levels. A level of size 0 does not exist in a run, the others keep their numbers.
const (
	GPU Kind = iota
	CPU
	Storage
	NumKinds // the length of an array indexed by Level
)

// String returns "gpu", "cpu" or "storage".
func (l Kind) String() string { return name(levelNames[:], int(l), "Level") }

// Op is the direction of a transfer, seen from the tier.
type Op uint8

// The two directions.
const (
	Read Op = iota
	Write
	NumOps // the length of an array indexed by Op
)

// String returns "read" or "write".
func (o Op) String() string { return name(opNames[:], int(o), "Op") }

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
func (p Phase) String() string { return name(phaseNames[:], int(p), "Phase") }

var (
	levelNames = [NumKinds]string{GPU: "gpu", CPU: "cpu", Storage: "storage"}
	opNames    = [NumOps]string{Read: "read", Write: "write"}
	phaseNames = [NumPhases]string{Prefill: "Prefill", Decode: "Decode", Evict: "Evict"}
)

func name(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

// Object is one cached entry as tiers know it. Key and Gen together name the bytes; Size is their number.
type Object struct {
	Key string
	// Gen is the write generation: which write of this run made the entry. A key that is evicted and written
	// again gets another Gen, other content and another name, so a stale read cannot look like a good one.
	Gen uint64
	// Size is in bytes, after tensor parallelism. It is never rounded: padding is the tier's own affair.
	Size int64
}

// ID names the bytes of an entry.
type ID struct {
	key string
	gen uint64
}

func (o Object) ID() ID { return ID{o.Key, o.Gen} }

// Traits tells a Transfer how a tier wants to be used. They do not change during a tier's life.
type Traits struct {
	// NoData: the tier holds no bytes, so transfers neither generate nor verify them and take no buffers.
	// Its writers and readers may implement Skipper to take the time that the bytes would take.
	NoData bool
	// Instant, with NoData: operations take no time and cannot fail. A Cache does not call such a tier.
	Instant bool
	// BytesAtCommit: written bytes have reached the device only when Commit returns, and count then.
	BytesAtCommit bool
	// Align is the multiple of offset, length and address that WriteAt and ReadAt need: 4096 or more for
	// direct I/O, else 1. It divides every chunk size in use; only an entry's last chunk may be shorter.
	Align int
	// Description is for people: "direct I/O on ext4", "simulated, 64.0 GB/s".
	Description string
}

// Tier is a place where entries live. It keeps no capacity and no order of its own: the Cache does.
//
// All methods are safe for concurrent use. Create, Remove and Close never wait for other operations.
type Tier interface {
	Traits() Traits
	// Create begins writing an entry. Nothing can be opened until Commit. An entry with the same Key and Gen
	// must not exist.
	Create(ctx context.Context, o Object) (Writer, error)
	// Open begins reading a committed entry. ErrNotFound when there is none.
	Open(ctx context.Context, o Object) (Reader, error)
	// Remove deletes a committed entry; its space is free when Remove returns, unless it is still open for
	// reading: then when the last reader closes. ErrNotFound when there is none. A cancelled context does not
	// stop a removal, which is short and leaves nothing half done.
	Remove(ctx context.Context, o Object) error
	// Close releases what the tier holds. Transfers must have ended. Closing twice is harmless.
	Close() error
}

// Writer writes one entry. Exactly one of Commit and Abort ends it; Abort after either does nothing.
type Writer interface {
	// WriteAt writes p at off, all of it or an error. It does not keep p. Parallel calls on disjoint ranges
	// are allowed. Where len(p) is no multiple of Traits.Align (the last chunk), cap(p) reaches the next one
	// and the bytes between are written as padding.
	WriteAt(ctx context.Context, p []byte, off int64) error
	// Commit makes the entry durable as far as the tier promises it, and visible. If it fails the entry is
	// gone, as after Abort.
	Commit(ctx context.Context) error
	// Abort gives up: nothing of the entry remains in the tier.
	Abort() error
}

// Reader reads one entry.
type Reader interface {
	// ReadAt fills p from off, all of it or an error: no partial results. Parallel calls are allowed. Where
	// len(p) is no multiple of Traits.Align, cap(p) reaches the next one and may be overwritten so far.
	ReadAt(ctx context.Context, p []byte, off int64) error
	// Close ends reading. Closing twice is harmless.
	Close() error
}

// Skipper is implemented by writers and readers of NoData tiers that nevertheless take time: Skip returns
// when n bytes would have moved.
//
// One that implements Pacer instead reports the bytes as they move.
type Skipper interface {
	Skip(ctx context.Context, n int64) error
}

// Pacer is a Skipper for transfers whose chunks count one by one: done is told of each.
type Pacer interface {
	Pace(ctx context.Context, n int64, done func(bytes int64)) error
}

// Run is several entries that lie side by side in one file: entry i begins Start(i) bytes after the first. Between an
// entry's end and the next one's start lies padding.
type Run interface {
	Len() int
	Start(i int) int64
}

// RunWriter writes a run: offsets count from the run's first byte, Commit and Abort are for all its entries.
type RunWriter interface {
	Writer
	Run
}

// RunReader reads a run: offsets count from the run's first byte.
type RunReader interface {
	Reader
	Run
}

// RunTier is a Tier that lays entries side by side in files, so that one request moves a run of them.
type RunTier interface {
	Tier
	// CreateRun begins writing the first of objects, at least one, in the places where they lie side by side from then
	// on. How many it takes is the layout's decision; the run's bytes end within limit, unless it is a single entry. at is
	// the place of objects[0] among the entries of its request. Errors are those of Create for the first of them.
	CreateRun(ctx context.Context, objects []Object, at int, limit int64) (RunWriter, error)
	// OpenRun begins reading the first of objects, at least one, as many as lie side by side and end within limit. Errors
	// are those of Open for the first of them.
	OpenRun(ctx context.Context, objects []Object, limit int64) (RunReader, error)
}

// AlignUp rounds n up to a multiple of align.
func AlignUp[T int | int64](n, align T) T { return (n + align - 1) / align * align }
