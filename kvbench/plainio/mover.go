package plainio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/transfer"
)

// mover reads and writes objects of one tier chunk by chunk, with one request in flight per buffer. It
// uses neither the cache nor the cache's transfer. It generates no data except for a stamp, and verifies
// nothing. On a tier without files a request is a whole object, or a part if the tier splits large objects.
type mover struct {
	bench *Bench
	tier  tiers.Tier
	plain tiers.Files // of the tier; nil for an object store
	chunk int64       // bytes of a request, or of a piece of one
	lease *lease      // the workers' buffers
	stamp atomic.Uint64
}

// newMover returns a mover for a level's tier.
func newMover(b *Bench, l cache.Level) (*mover, error) {
	if l.Tier == nil {
		return nil, fmt.Errorf("the %s tier takes no time: there is nothing to measure", l.Kind)
	}
	m := &mover{bench: b, tier: l.Tier, plain: l.Files(), chunk: int64(b.Transfer.Chunk)}
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

// largest returns the largest size of an object in bytes. For a file it is the size of an entry of
// thousands of tokens. For an object of a store it is less, because the bytes count only when the whole
// object has completed.
func (m *mover) largest() int64 {
	if m.plain == nil {
		return 8 << 20
	}
	return 64 << 20
}

// request returns the bytes of one request to an object of a size.
func (m *mover) request(size int64) int64 {
	if m.plain == nil {
		return size
	}
	return m.chunk
}

// buffers returns n buffers of a size with incompressible data. They have a pool of their own, because the
// run's pool was made before the number of workers was known. For a tier that stores no bytes the buffers
// have no memory.
func (m *mover) buffers(ctx context.Context, n int, size int64) (*lease, error) {
	l := &lease{bufs: make([]leased, n)}
	l.users.Store(1)
	for i := range l.bufs {
		l.bufs[i].lease, l.bufs[i].lane = l, i%m.bench.Lanes
	}
	if !m.holds() {
		return l, nil
	}
	pool, err := m.bench.NewPool(n, int(size))
	if err != nil {
		return nil, err
	}
	bufs, err := pool.Get(ctx, n, nil)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	for i, b := range bufs {
		m.bench.Content.Fill(b.B, tiers.Object{Key: plainKeys, Size: size}, 0)
		l.bufs[i].Buffer = b
	}
	l.pool = pool
	return l, nil
}

// equip gives each of n workers a buffer of a size.
func (m *mover) equip(ctx context.Context, n int, size int64) (err error) {
	m.Finish(nil)
	m.lease, err = m.buffers(ctx, n, size)
	return err
}

// Finish frees the workers' buffers.
func (m *mover) Finish(*Bench) {
	if m != nil {
		_ = m.lease.free() // an error would lose no data
		m.lease = nil
	}
}

// report writes the workers' buffers into the result.
func (m *mover) report(res *result.Result) {
	if l := m.lease; l != nil && l.pool != nil {
		res.IO.Pool = result.Pool{Buffers: len(l.bufs), BufferBytes: len(l.bufs[0].B),
			HugePages: l.pool.HugePages(), Covers: true}
	}
}

// lease keeps the buffers of streams until the last request has completed, because a device that does not
// answer may still write into a buffer long after the caller has returned.
type lease struct {
	pool  *buffer.Pool // nil for a tier that stores no bytes
	bufs  []leased
	users atomic.Int64 // the holder, and the passes with a request that may be in flight
}

// leased is one buffer of a lease. Its requests are in one lane, see [Config].
type leased struct {
	tiers.Buffer
	lease *lease
	lane  int
}

// take adds a user of the buffers. It returns false if they are freed.
func (l *lease) take() bool {
	for n := l.users.Load(); n > 0; n = l.users.Load() {
		if l.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// free removes a user of the buffers. The last user frees their memory.
func (l *lease) free() error {
	if l == nil || l.users.Add(-1) > 0 || l.pool == nil {
		return nil
	}
	for _, b := range l.bufs {
		l.pool.Put(b.Buffer)
	}
	return l.pool.Close()
}

// pass calls transfer.Pass with the buffer.
func (b leased) pass(ctx context.Context, c clock.Clock, io *tiers.IO, next transfer.Next,
	count counter) error {
	io.Buf, io.Lane = b.Buffer, 1+b.lane
	b.lease.users.Add(1)
	return transfer.Pass(ctx, c, io, next, count, func() {
		_ = b.lease.free() // an error would lose no data
	})
}

// holds reports whether the tier stores bytes.
func (m *mover) holds() bool { return m.tier.Traits().Holds }

// evenly returns a key for the n-th object of a name, such that a tier's directories get the objects in
// turn. A hash spreads few objects badly: of sixteen files it may put ten into one of two directories, and
// that directory would limit the rate.
func evenly(files tiers.Files, name string, n int64) string {
	key := fmt.Sprint(name, n)
	homes, ok := files.(interface{ Home(key string) (at, of int) })
	for try := 1; ok; try++ {
		if at, of := homes.Home(key); int64(at) == n%int64(of) {
			break
		}
		key = fmt.Sprint(name, n, ".", try)
	}
	return key
}

// wholeChunks rounds a size down to whole chunks, at least one chunk.
func (m *mover) wholeChunks(size int64) int64 { return max(m.chunk, size/m.chunk*m.chunk) }

// io returns the first request of an object, at the offset off.
func (m *mover) io(off int64, o tiers.Object) *tiers.IO {
	return &tiers.IO{Off: off, N: int(min(m.chunk, o.Size-off))}
}

// counter is called after each request and flush. It returns false to end the operation.
type counter func(tiers.Chunk) (more bool)

// transfer reads an object from an offset on, or writes a whole object.
func (m *mover) transfer(ctx context.Context, buf leased, op tiers.Op, o tiers.Object, from int64,
	count counter) error {
	if op == tiers.Read {
		return m.read(ctx, buf, o, from, count)
	}
	return m.write(ctx, buf, o, count)
}

// read reads an object from an offset on and drops the data. The offset is a multiple of the chunk.
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
	err = buf.pass(ctx, m.bench.Clock, io, transfer.Sequence(f, io, o.Size, func([]byte) {}), count)
	return errors.Join(err, f.Close())
}

// write writes an object and flushes it. The bytes of buffered files count with the flush. If count ends
// the write early, the object stays and is flushed, because a removal would cause discards during the
// next measurement. If ctx ends, write removes the object.
func (m *mover) write(ctx context.Context, buf leased, o tiers.Object, count counter) error {
	if m.plain == nil {
		return m.put(ctx, buf, o, count)
	}
	f, err := m.plain.Create(ctx, o)
	if err != nil {
		return err
	}
	late := m.tier.Traits().CountsAtCommit // the flush counts all bytes
	moved := int64(0)
	io := m.io(0, o)
	next := transfer.Sequence(f, io, o.Size, m.newStamper().stampBlocks)
	if err := buf.pass(ctx, m.bench.Clock, io, next, func(c tiers.Chunk) bool {
		c.Op = tiers.Write
		moved += c.Bytes
		if late {
			c.Bytes = 0
		}
		return count(c)
	}); err != nil {
		return errors.Join(err, f.Abort())
	}
	flush := tiers.Chunk{Op: tiers.Write, Flush: true, Begun: m.bench.Clock.Now(),
		Part: tiers.PartOf(f)}
	if err := f.Commit(ctx); err != nil {
		return err
	}
	flush.Submitted, flush.Ended, flush.Completed = flush.Begun, m.bench.Clock.Now(), m.bench.Clock.Now()
	if late {
		flush.Bytes = moved
	}
	count(flush)
	return nil
}

// stamper gives one worker unique numbers. It reserves many at a time, because all workers share the mover's
// counter.
type stamper struct {
	m          *mover
	next, last uint64
}

// stampsReserved is how many numbers a stamper reserves at a time: those for 64 MiB.
const stampsReserved = 16384

func (m *mover) newStamper() *stamper { return &stamper{m: m, next: 1} }

// stampBlocks writes a unique number into every 4 KiB block, so that deduplication finds no equal
// blocks.
func (s *stamper) stampBlocks(buf []byte) {
	for at := 0; at+stampedBlock <= len(buf); at += stampedBlock {
		if s.next > s.last {
			s.last = s.m.stamp.Add(stampsReserved)
			s.next = s.last - stampsReserved + 1
		}
		binary.LittleEndian.PutUint64(buf[at:], s.next)
		s.next++
	}
}
