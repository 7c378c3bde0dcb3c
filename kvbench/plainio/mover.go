package plainio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/transfer"
)

// mover moves objects of one tier chunk by chunk, one request at a time in a buffer, without cache
// and transfer, without data generation beyond a stamp, and without verification. The number of
// buffers in use is the number in flight. On a tier without files a request is a whole object, or,
// where the tier splits large ones itself, one part at a time.
type mover struct {
	env   *kvbench.Env
	level cache.Level
	chunk int64 // bytes of a request, or of a piece of one
	// plain are the files of the tier. Without any, a request is a whole object.
	plain tiers.Files
	name  string
	made  atomic.Int64 // objects
	huge  string       // what kind of memory the last buffers are
	stamp atomic.Uint64
}

// newMover returns a mover whose keys begin with a name that no other writer of the run uses.
func newMover(e *kvbench.Env, l cache.Level, name string) (*mover, error) {
	if l.Tier == nil {
		return nil, fmt.Errorf("the %s tier takes no time: there is nothing to measure", l.Kind)
	}
	m := &mover{env: e, level: l, name: name, chunk: int64(e.Transfer.Chunk), plain: l.Files()}
	traits := l.Tier.Traits()
	if chunk := int64(traits.Chunk); chunk > 0 {
		m.chunk = min(m.chunk, chunk)
	}
	if align := int64(traits.Align); align > 1 && m.chunk%align != 0 {
		return nil, fmt.Errorf("requests of %d bytes cannot be made: direct I/O takes multiples "+
			"of %d bytes here (-chunk-size, the size of blocks, or -io buffered)", m.chunk, align)
	}
	return m, nil
}

// largest is the largest size of an object: an entry of thousands of tokens. It is smaller
// where bytes count only when the last one has completed. The objects of other benchmarks of stores
// have some MiB, too.
func (m *mover) largest() int64 {
	if m.plain == nil {
		return 8 << 20
	}
	return 64 << 20
}

// request is the bytes of one completion of an object of that size.
func (m *mover) request(size int64) int64 {
	if m.plain == nil {
		return size
	}
	return m.chunk
}

// buffers makes n buffers of a size, full of incompressible data. They are the mover's own: a run's
// pool has only the workers' buffers, and their number is not known yet. A tier without bytes needs
// none.
func (m *mover) buffers(ctx context.Context, n int, size int64) (*lease, error) {
	l := &lease{bufs: make([]leased, n)}
	l.users.Store(1)
	for i := range l.bufs {
		l.bufs[i].of = l
	}
	if !m.holds() {
		return l, nil
	}
	pool, err := m.env.NewPool(n, int(size))
	if err != nil {
		return nil, err
	}
	bufs, err := pool.Get(ctx, n, nil)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	for i, b := range bufs {
		m.env.Content.Fill(b.B, tiers.Object{Key: m.name, Size: size}, 0)
		l.bufs[i].Buffer = b
	}
	l.pool, m.huge = pool, pool.HugePages()
	return l, nil
}

// pool reports the buffers that a routine has for its window.
func (m *mover) pool(res *result.Result, l *lease, size int64) {
	if m.holds() {
		res.IO.Pool = result.Pool{Buffers: l.len(), BufferBytes: int(size), HugePages: m.huge,
			Covers: true}
	}
}

// fill writes n objects, several at a time, each by a function that gets the number of its writer.
func fill(ctx context.Context, e *kvbench.Env, n, writers int,
	write func(ctx context.Context, writer, i int) error) error {
	return concurrently(ctx, e, min(writers, n), func(ctx context.Context, w int) (err error) {
		for i := w; i < n && err == nil; i += writers {
			err = write(ctx, w, i)
		}
		return err
	})
}

// lease is the buffers of streams, in use until the last request has completed: a device that does
// not answer may write into one long after its caller has returned.
type lease struct {
	pool  *buffer.Pool // nil: of a tier without bytes
	bufs  []leased
	users atomic.Int64 // its holder, and the passes whose buffer may be the device's
}

// leased is one buffer of a lease.
type leased struct {
	tiers.Buffer
	of *lease
}

// len is the number of buffers, 0 for a nil lease.
func (l *lease) len() int {
	if l == nil {
		return 0
	}
	return len(l.bufs)
}

// take keeps the buffers for another user, unless they are gone.
func (l *lease) take() bool {
	for n := l.users.Load(); n > 0; n = l.users.Load() {
		if l.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// free returns the buffers; the memory is freed now, or when the device has completed its requests.
func (l *lease) free() error {
	if l == nil || l.users.Add(-1) > 0 || l.pool == nil {
		return nil
	}
	for _, b := range l.bufs {
		l.pool.Put(b.Buffer)
	}
	return l.pool.Close()
}

// pass is a transfer.Pass through the buffer.
func (b leased) pass(ctx context.Context, c clock.Clock, io *tiers.IO, next transfer.Next,
	count counter) error {
	io.Buf = b.Buffer
	b.of.users.Add(1)
	return transfer.Pass(ctx, c, io, next, count, func() {
		_ = b.of.free() // memory that is ours alone
	})
}

// holds reports whether the tier stores bytes, rather than only taking their time.
func (m *mover) holds() bool { return m.level.Tier.Traits().Holds }

// object returns a new object.
func (m *mover) object(size int64) tiers.Object {
	n := m.made.Add(1)
	return tiers.Object{Key: evenly(m.plain, m.name, n), Gen: uint64(n), Size: size}
}

// evenly returns a key for the n-th object of a name that spreads the objects over all directories
// of a tier in turn. The entries of a run are numerous enough for a hash. Of sixteen files a hash
// may put ten into one of two directories, which would then be the limit.
func evenly(files tiers.Files, name string, n int64) string {
	key := fmt.Sprint(name, n)
	many, some := files.(interface{ Home(key string) (at, of int) })
	for try := 1; some; try++ {
		if at, of := many.Home(key); int64(at) == n%int64(of) {
			break
		}
		key = fmt.Sprint(name, n, ".", try)
	}
	return key
}

// remover removes objects, see tiers.Tier.
type remover interface {
	Remove(ctx context.Context, objs ...tiers.Object) error
}

// owner is where the mover's objects are: in the files, or in a tier without any.
func (m *mover) owner() remover {
	if m.plain != nil {
		return m.plain
	}
	return m.level.Tier
}

// wholeChunks rounds a size down, but to one chunk at least.
func (m *mover) wholeChunks(size int64) int64 { return max(m.chunk, size/m.chunk*m.chunk) }

// io is the first request of an object.
func (m *mover) io(off int64, o tiers.Object) *tiers.IO {
	return &tiers.IO{Off: off, N: int(min(m.chunk, o.Size-off))}
}

// counter gets each request and flush, and reports whether there are to be more requests.
type counter func(tiers.Chunk) (more bool)

// read reads an object from an offset on, which is a multiple of the chunk, and drops the data.
func (m *mover) read(ctx context.Context, buf leased, o tiers.Object, from int64,
	count counter) error {
	if m.plain == nil {
		return m.get(ctx, buf, o, count)
	}
	f, err := m.plain.Open(ctx, o)
	if err != nil {
		return err
	}
	io := m.io(from, o)
	err = buf.pass(ctx, m.env.Clock, io, transfer.Sequence(f, io, o.Size, func([]byte) {}), count)
	return errors.Join(err, f.Close())
}

// write writes an object and flushes it. Bytes that count at the commit alone, behind a page cache,
// are reported with the flush. An object that count cut short stays, and is flushed: its removal
// would make the filesystem discard blocks during the next measurement. After the end of ctx
// nothing of it is left.
func (m *mover) write(ctx context.Context, buf leased, o tiers.Object, count counter) error {
	if m.plain == nil {
		return m.put(ctx, buf, o, count)
	}
	f, err := m.plain.Create(ctx, o)
	if err != nil {
		return err
	}
	late := m.level.Tier.Traits().CountsAtCommit
	moved := int64(0)
	io := m.io(0, o)
	next := transfer.Sequence(f, io, o.Size, m.stampBlocks)
	if err := buf.pass(ctx, m.env.Clock, io, next, func(c tiers.Chunk) bool {
		c.Op = tiers.Write
		moved += c.Bytes
		if late {
			c.Bytes = 0
		}
		return count(c)
	}); err != nil {
		return errors.Join(err, f.Abort())
	}
	flush := tiers.Chunk{Op: tiers.Write, Flush: true, Begun: m.env.Clock.Now(),
		Part: tiers.PartOf(f)}
	if err := f.Commit(ctx); err != nil {
		return err
	}
	flush.Asked, flush.Ended, flush.Done = flush.Begun, m.env.Clock.Now(), m.env.Clock.Now()
	if late {
		flush.Bytes = moved
	}
	count(flush)
	return nil
}

// stampBlocks makes every 4 KiB block unique with one store each: drives and filesystems that
// deduplicate find nothing, and generating data takes no time.
func (m *mover) stampBlocks(buf []byte) {
	blocks := uint64(len(buf) / 4096)
	n := m.stamp.Add(blocks)
	for i := range blocks {
		binary.LittleEndian.PutUint64(buf[i*4096:], n-i)
	}
}

// mix chooses the direction that is behind its share of the bytes. It counts the bytes before they
// move, so that parallel streams do not all choose the same.
type mix struct {
	share float64 // of reads
	begun [tiers.NumOps]atomic.Int64
}

// next gets how many bytes would be read or written.
func (m *mix) next(read, write int64) (op tiers.Op) {
	begun, wrote := float64(m.begun[tiers.Read].Load()), float64(m.begun[tiers.Write].Load())
	if m.share > 0 && begun <= (begun+wrote)*m.share {
		m.begun[tiers.Read].Add(read)
		return tiers.Read
	}
	m.begun[tiers.Write].Add(write)
	return tiers.Write
}
