package tiertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
)

// Part is how many bytes a request of Stream moves. It is no multiple of Chunk, because a store's
// parts and ranges need not be.
const Part = 3*Chunk - 4096

// Stream is a tiers.Streamer on top of another tier: an object store without a network. Put reads the
// parts of an object concurrently and in descending order, and the first half of each part twice, as
// after an attempt that failed in its middle.
type Stream struct {
	tiers.Tier

	mu   sync.Mutex
	hook func(op tiers.Op, off int64) error
}

var _ tiers.Streamer = (*Stream)(nil)

// NewStream wraps a tier that holds bytes.
func NewStream(inner tiers.Tier) *Stream {
	return &Stream{Tier: inner, hook: func(tiers.Op, int64) error { return nil }}
}

// SetHook sets a function that runs before each request. The request fails with the function's error.
// So a test can fail a part in the middle of an object, after some parts have completed and while
// others are in flight.
func (t *Stream) SetHook(f func(op tiers.Op, off int64) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hook = f
}

func (t *Stream) ask(op tiers.Op, off int64) error {
	t.mu.Lock()
	f := t.hook
	t.mu.Unlock()
	return f(op, off)
}

// Traits returns the inner tier's traits, with Stream.
func (t *Stream) Traits() tiers.Traits {
	traits := t.Tier.Traits()
	traits.Stream, traits.Description = true, "streams over "+traits.Description
	return traits
}

// Streams returns the number of parts.
func (t *Stream) Streams(o tiers.Object) int { return int((o.Size-1)/Part) + 1 }

// each calls do for all parts of an object on so many goroutines, the last part first. All goroutines
// have ended when it returns, so that no chunk is reported later.
func (t *Stream) each(o tiers.Object, streams int, do func(i int, off, n int64) error) error {
	// Parts in ascending order would not find a body that only works in that order.
	var offs []int64
	for off := int64(0); off < o.Size; off += Part {
		offs = append(offs, off)
	}
	slices.Reverse(offs)
	work := make(chan int64, len(offs))
	for _, off := range offs {
		work <- off
	}
	close(work)
	errs := make([]error, streams)
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			for off := range work {
				if errs[i] = do(i, off, min(Part, o.Size-off)); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// submit makes one request to the inner tier and waits for it, as a goroutine of a store's client
// does.
func submit(to tiers.Submitter, p []byte, off int64) error {
	back := make(chan error, 1)
	to.Submit(&tiers.IO{Buf: tiers.Buffer{B: p}, Off: off, N: len(p),
		Done: func(io *tiers.IO) { back <- io.Err }})
	return <-back
}

// Put implements tiers.Streamer. The inner tier makes the object visible as a whole. After any
// failure, also of the body, Put aborts the object.
func (t *Stream) Put(ctx context.Context, o tiers.Object,
	body func(off, n int64) io.ReadSeeker, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	w, err := t.Create(ctx, o)
	if err != nil {
		return tm, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	var mu sync.Mutex
	err = t.each(o, 2, func(_ int, off, n int64) error {
		// The first attempt ends in its middle, the second one counts. The body must return the same
		// bytes again, and end after n bytes.
		p := make([]byte, n)
		b := body(off, n)
		if _, err := io.ReadFull(b, p[:n/2]); err != nil {
			return err
		}
		if _, err := b.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(b, p); err != nil {
			return err
		}
		if extra, err := b.Read(make([]byte, 1)); extra != 0 || err != io.EOF {
			return fmt.Errorf("a stream of %d bytes goes on behind its end", n)
		}
		if err := errors.Join(context.Cause(ctx), t.ask(tiers.Write, off)); err != nil {
			return err
		}
		if err := submit(w, p, off); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		tm.Device += time.Nanosecond
		done(tiers.Chunk{Op: tiers.Write, Bytes: n})
		return nil
	})
	if err == nil {
		err = w.Commit(ctx)
	}
	return tm, err
}

// Get implements tiers.Streamer. After a failure other ranges that have begun are read to their end,
// because a store has already sent them.
func (t *Stream) Get(ctx context.Context, o tiers.Object, bufs []tiers.Buffer,
	sink func(p []byte, off int64) error, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	r, err := t.Open(ctx, o)
	if err != nil {
		return tm, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var mu sync.Mutex
	err = t.each(o, len(bufs), func(i int, off, n int64) error {
		if err := errors.Join(context.Cause(ctx), t.ask(tiers.Read, off)); err != nil {
			return err
		}
		// Pieces have the size of the caller's buffers. All pieces of a request but the last are
		// reported as Piece, so that the number of chunks is the number of requests at the store.
		for end := off + n; off < end; {
			p := bufs[i].B[:min(int64(len(bufs[i].B)), end-off)]
			if err := submit(r, p, off); err != nil {
				return err
			}
			if err := sink(p, off); err != nil {
				return err
			}
			off += int64(len(p))
			mu.Lock()
			done(tiers.Chunk{Op: tiers.Read, Bytes: int64(len(p)), Piece: off < end})
			mu.Unlock()
		}
		return nil
	})
	return tm, err
}

// streamer returns the tier as a tiers.Streamer. It skips the test for other tiers.
func (s *suite) streamer() tiers.Streamer {
	t, ok := s.tier.(tiers.Streamer)
	assert.Equal(s, ok, s.tier.Traits().Stream, "a Streamer sets Traits.Stream")
	if !ok {
		s.Skip("the tier takes requests at offsets only")
	}
	return t
}

// watched is a stream that calls look before each read. An error of look ends the stream.
type watched struct {
	io.ReadSeeker
	look func() error
}

func (w watched) Read(p []byte) (int, error) {
	if err := w.look(); err != nil {
		return 0, err
	}
	return w.ReadSeeker.Read(p)
}

// body returns the body of an object for Put. Its streams call look before each read. It keeps the
// whole content in memory.
func body(o tiers.Object, look func() error) func(off, n int64) io.ReadSeeker {
	all := make([]byte, o.Size)
	Content.Fill(all, o, 0)
	return func(off, n int64) io.ReadSeeker {
		return watched{bytes.NewReader(all[off : off+n]), look}
	}
}

// streamSizes are sizes around the piece size of Get, and one size of many pieces.
var streamSizes = []int64{1, 4095, 4096, 4097, 3*4096 - 1, 1<<20 + 5}

// streams writes and reads whole objects. An object is visible once Put has returned. Get passes and
// reports each byte once, in whole pieces.
func (s *suite) streams() {
	t := s.streamer()
	for i, size := range streamSizes {
		o := object(fmt.Sprint("k", i), size)
		var mu sync.Mutex
		var reported [tiers.NumOps]int64
		done := func(c tiers.Chunk) {
			mu.Lock()
			defer mu.Unlock()
			reported[c.Op] += c.Bytes
		}
		tm, err := t.Put(s.ctx, o, body(o, func() error { s.absent(o); return nil }), done)
		require.NoError(s, err)
		assert.GreaterOrEqual(s, tm.Device, time.Duration(0))
		assert.Equal(s, size, reported[tiers.Write])
		assert.Positive(s, t.Streams(o))
		for _, n := range []int{1, 3} {
			reported[tiers.Read] = 0
			got := make([]byte, size)
			tm, err = t.Get(s.ctx, o, pieces(n), func(p []byte, off int64) error {
				assert.Zero(s, off%4096, "pieces begin at multiples of their size")
				copy(got[off:], p)
				mu.Lock()
				defer mu.Unlock()
				reported[tiers.Read] -= int64(len(p))
				return nil
			}, done)
			require.NoError(s, err)
			assert.GreaterOrEqual(s, tm.Device, time.Duration(0))
			assert.NoError(s, Content.Check(got, o, 0))
			assert.Zero(s, reported[tiers.Read], "the chunks report the bytes that sink received")
		}
		s.get(o)
		// To a concurrent reader other content under the same name would look like a torn read.
		_, err = t.Put(s.ctx, o, body(o, func() error { return nil }), done)
		assert.Error(s, err, "the same generation twice")
		require.NoError(s, s.tier.Remove(s.ctx, o))
		_, err = t.Get(s.ctx, o, pieces(1), func([]byte, int64) error { return nil }, done)
		assert.ErrorIs(s, err, tiers.ErrNotFound)
		assert.ErrorContains(s, err, o.Key)
	}
}

// pieces returns buffers for Get that are smaller than the parts and ranges of all tiers, so that a
// request fills more than one of them.
func pieces(n int) (bufs []tiers.Buffer) {
	for range n {
		bufs = append(bufs, tiers.Buffer{B: make([]byte, 4096)})
	}
	return bufs
}

// brokenStreams tests bodies that fail, contexts that end during a call, and sinks that fail.
func (s *suite) brokenStreams() {
	t := s.streamer()
	o := object("k", 100_000)
	broken := errors.New("broken")
	ignore := func(tiers.Chunk) {}
	_, err := t.Put(s.ctx, o, body(o, func() error { return broken }), ignore)
	assert.ErrorIs(s, err, broken)
	s.absent(o)
	// If the window ends in the middle of an object, Put must remove the parts that were sent. A
	// store behind a network may have completed the object before it sees the end: then it exists.
	ctx, cancel := context.WithCancel(s.ctx)
	_, err = t.Put(ctx, o, body(o, func() error { cancel(); return nil }), ignore)
	if err == nil {
		s.get(o)
		require.NoError(s, s.tier.Remove(s.ctx, o))
	} else {
		assert.ErrorIs(s, err, context.Canceled)
	}
	s.absent(o)
	// Use another generation: a store may still complete the interrupted upload of the first one.
	o.Gen = 2
	_, err = t.Put(s.ctx, o, body(o, func() error { return nil }), ignore)
	require.NoError(s, err)
	// Verification ends a read at the first error, while other ranges are in flight.
	_, err = t.Get(s.ctx, o, pieces(2), func([]byte, int64) error { return broken }, ignore)
	assert.ErrorIs(s, err, broken)
	_, err = t.Get(ctx, o, pieces(1), func([]byte, int64) error { return nil }, ignore)
	assert.ErrorIs(s, err, context.Canceled)
	s.get(o)
}
