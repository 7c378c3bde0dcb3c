package objecttier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/store"
)

// A store takes objects as a whole, so a writer at offsets has all of one in memory until Commit,
// and each request of a reader is a GET of its own. Whoever can moves streams instead.

// errSplit: an entry of several objects has no offsets of its own.
var errSplit = fmt.Errorf("an entry of several objects at offsets: %w", errors.ErrUnsupported)

// writer collects one object.
type writer struct {
	tiers.One
	t *Tier
	o tiers.Object

	mu    sync.Mutex
	bytes []byte
	ended bool
}

// Create begins an object in memory: nothing is sent before Commit.
func (t *Tier) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	o := objs[0]
	if len(t.pieces(o)) > 1 {
		return nil, t.fail("create", o, -1, errSplit)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, t.fail("create", o, -1, tiers.ErrClosed)
	}
	return &writer{t: t, o: o, bytes: make([]byte, o.Size)}, nil
}

// Submit copies.
func (w *writer) Submit(io *tiers.IO) {
	w.mu.Lock()
	err := tiers.ErrClosed
	switch {
	case w.ended:
	case io.Off < 0 || io.Off+int64(io.N) > w.o.Size:
		err = beyond(io, w.o)
	default:
		copy(w.bytes[io.Off:], io.Buf.B[:io.N])
		err = nil
	}
	w.mu.Unlock()
	if err != nil {
		err = w.t.fail("write", w.o, io.Off, err)
	}
	io.End(err)
}

// Commit sends the object. It is here that a second writer of one generation is refused.
func (w *writer) Commit(ctx context.Context) error {
	w.mu.Lock()
	ended := w.ended
	w.ended = true
	w.mu.Unlock()
	if ended {
		return w.t.fail("commit", w.o, -1, tiers.ErrClosed)
	}
	_, err := w.t.Put(ctx, w.o, func(off, n int64) io.ReadSeeker {
		return bytes.NewReader(w.bytes[off : off+n])
	}, func(tiers.Chunk) {})
	return err
}

// beyond is the error of a request that is not inside of its object: the bytes there are another's.
func beyond(io *tiers.IO, o tiers.Object) error {
	return fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", io.N, io.Off, o.Size)
}

// Abort forgets it.
func (w *writer) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return nil
}

// reader reads one object, which is not deleted before it and its requests have ended.
type reader struct {
	tiers.One
	t    *Tier
	o    tiers.Object
	ctx  context.Context // of the requests: they outlive Close
	once sync.Once
}

// Open holds an object. That the store still has it shows when it is read.
func (t *Tier) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	if len(t.pieces(objs[0])) > 1 {
		return nil, t.fail("open", objs[0], -1, errSplit)
	}
	if err := t.hold(objs[0]); err != nil {
		return nil, err
	}
	return &reader{t: t, o: objs[0], ctx: context.WithoutCancel(ctx)}, nil
}

// Submit begins a ranged GET on a goroutine of its own, which keeps the object from being deleted
// until its bytes have come, whoever has closed the reader meanwhile.
func (r *reader) Submit(io *tiers.IO) {
	fail := func(err error) { io.End(r.t.fail("read", r.o, io.Off, err)) }
	if io.Off < 0 || io.Off+int64(io.N) > r.o.Size {
		fail(beyond(io, r.o))
		return
	}
	// The reader's own hold keeps the entry there, so that this one needs no look at its state: an
	// object that was removed meanwhile is still whole.
	r.t.mu.Lock()
	r.t.entries[r.o.ID()].readers++
	r.t.mu.Unlock()
	go func() {
		rg := store.Range{Off: io.Off, N: int64(io.N), Of: r.o.Size}
		got, err := r.t.client.Get(r.ctx, r.t.key(r.o), rg, io.Buf.B[:io.N],
			func([]byte, int64) error { return nil })
		io.Begun, io.Ended = got.Begun, got.Ended
		_ = r.t.drop(r.o) // a deletion that fails is Clear's
		if err != nil {
			fail(err)
			return
		}
		io.End(nil)
	}()
}

// Close lets go of the object, which is deleted then if it was removed and nobody else reads it.
func (r *reader) Close() (err error) {
	r.once.Do(func() { err = r.t.drop(r.o) })
	return err
}
