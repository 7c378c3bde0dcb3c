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

// Part is how many bytes a request of Stream moves: no multiple of a chunk of the tests, as parts
// and ranges of a store need not be.
const Part = 3*Chunk - 4096

// Stream is a tier whose objects come and go as streams, over another one: what an object store
// does, without a network. It asks for the parts of an object in falling order and side by side,
// and for the first half of each once more, as after an attempt that failed in its middle.
type Stream struct {
	tiers.Tier

	mu   sync.Mutex
	hook func(op tiers.Op, off int64) error
}

var _ tiers.Streamer = (*Stream)(nil)

// NewStream is in front of a tier of bytes.
func NewStream(inner tiers.Tier) *Stream {
	return &Stream{Tier: inner, hook: func(tiers.Op, int64) error { return nil }}
}

// SetHook has f asked before each request; its error is the request's. It is how a test fails a
// part in the middle of an object, where parts before it have been moved and others are under way.
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

// Traits are those of the tier inside.
func (t *Stream) Traits() tiers.Traits {
	traits := t.Tier.Traits()
	traits.Stream, traits.Description = true, "streams over "+traits.Description
	return traits
}

// Streams is one for each part.
func (t *Stream) Streams(o tiers.Object) int { return int((o.Size-1)/Part) + 1 }

// each does something for all parts of an object in so many goroutines, the last part first. All
// have ended when it returns, so that whoever called is told of nothing later.
func (t *Stream) each(o tiers.Object, streams int, do func(i int, off, n int64) error) error {
	// Falling, because a tier that took the parts of an object in their order would pass with a
	// caller who makes them in one go.
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

// submit carries out one request to the tier inside and waits for it, as the goroutine of a request
// to a store does.
func submit(to tiers.Submitter, p []byte, off int64) error {
	back := make(chan error, 1)
	to.Submit(&tiers.IO{Buf: tiers.Buffer{B: p}, Off: off, N: len(p),
		Done: func(io *tiers.IO) { back <- io.Err }})
	return <-back
}

// Put implements tiers.Streamer. The object is visible as a whole, because the tier inside has it
// so; whatever fails, a body that cannot be read included, takes all of it back.
func (t *Stream) Put(ctx context.Context, o tiers.Object,
	body func(off, n int64) io.ReadSeeker, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	w, err := t.Create(ctx, o)
	if err != nil {
		return tm, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	var mu sync.Mutex
	err = t.each(o, 2, func(_ int, off, n int64) error {
		// An attempt that breaks off in its middle, then the one that counts: what is made twice
		// must be the same, and end where it was said to.
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

// Get implements tiers.Streamer. A range that has begun is read on when another one has failed: a
// store has sent it by then.
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
		// Pieces of the caller's size, whatever that of a request is. All but the last of a request
		// are told as such, so that requests are counted as the store sees them.
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

// streamer is the tier as one whose objects come and go as streams; others have nothing to test.
func (s *suite) streamer() tiers.Streamer {
	t, ok := s.tier.(tiers.Streamer)
	assert.Equal(s, ok, s.tier.Traits().Stream, "who streams says so")
	if !ok {
		s.Skip("it wants requests at offsets")
	}
	return t
}

// watched is a stream that has somebody look before each read, who may end it.
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

// body is streams of an object's content, with somebody who looks. The objects of tests are small:
// it has all of one in memory, and is a function of any range as a body has to be.
func body(o tiers.Object, look func() error) func(off, n int64) io.ReadSeeker {
	all := make([]byte, o.Size)
	Content.Fill(all, o, 0)
	return func(off, n int64) io.ReadSeeker {
		return watched{bytes.NewReader(all[off : off+n]), look}
	}
}

// streamSizes are around the pieces of Get, and one of many pieces.
var streamSizes = []int64{1, 4095, 4096, 4097, 3*4096 - 1, 1<<20 + 5}

// streams has objects written and read whole: there once Put has returned, each byte given once, in
// whole pieces, and told as often.
func (s *suite) streams() {
	t := s.streamer()
	for i, size := range streamSizes {
		o := object(fmt.Sprint("k", i), size)
		var mu sync.Mutex
		var told [tiers.NumOps]int64
		done := func(c tiers.Chunk) {
			mu.Lock()
			defer mu.Unlock()
			told[c.Op] += c.Bytes
		}
		tm, err := t.Put(s.ctx, o, body(o, func() error { s.absent(o); return nil }), done)
		require.NoError(s, err)
		assert.GreaterOrEqual(s, tm.Device, time.Duration(0))
		assert.Equal(s, size, told[tiers.Write])
		assert.Positive(s, t.Streams(o))
		for _, n := range []int{1, 3} {
			told[tiers.Read] = 0
			got := make([]byte, size)
			tm, err = t.Get(s.ctx, o, pieces(n), func(p []byte, off int64) error {
				assert.Zero(s, off%4096, "pieces are not cut where they begin")
				copy(got[off:], p)
				mu.Lock()
				defer mu.Unlock()
				told[tiers.Read] -= int64(len(p))
				return nil
			}, done)
			require.NoError(s, err)
			assert.GreaterOrEqual(s, tm.Device, time.Duration(0))
			assert.NoError(s, Content.Check(got, o, 0))
			assert.Zero(s, told[tiers.Read], "what was told is what was given")
		}
		s.get(o)
		// Other content under a name that somebody may be reading would look like a torn read.
		_, err = t.Put(s.ctx, o, body(o, func() error { return nil }), done)
		assert.Error(s, err, "the same generation twice")
		require.NoError(s, s.tier.Remove(s.ctx, o))
		_, err = t.Get(s.ctx, o, pieces(1), func([]byte, int64) error { return nil }, done)
		assert.ErrorIs(s, err, tiers.ErrNotFound)
		assert.ErrorContains(s, err, o.Key)
	}
}

// pieces are buffers for Get, smaller than anybody's parts or ranges: what a request gives is
// more than one of them wherever the object is.
func pieces(n int) (bufs []tiers.Buffer) {
	for range n {
		bufs = append(bufs, tiers.Buffer{B: make([]byte, 4096)})
	}
	return bufs
}

// brokenStreams has bodies that cannot be read, those who end meanwhile, and sinks that want no
// more.
func (s *suite) brokenStreams() {
	t := s.streamer()
	o := object("k", 100_000)
	broken := errors.New("broken")
	nobody := func(tiers.Chunk) {}
	_, err := t.Put(s.ctx, o, body(o, func() error { return broken }), nobody)
	assert.ErrorIs(s, err, broken)
	s.absent(o)
	// A window's end comes in the middle of an object: what was sent of it must go. What lies
	// behind a network may have taken all of it before anybody sees the end: then it is there.
	ctx, cancel := context.WithCancel(s.ctx)
	_, err = t.Put(ctx, o, body(o, func() error { cancel(); return nil }), nobody)
	if err == nil {
		s.get(o)
		require.NoError(s, s.tier.Remove(s.ctx, o))
	} else {
		assert.ErrorIs(s, err, context.Canceled)
	}
	s.absent(o)
	// Another one: a store may put what it has of an upload that was cut off in its place even now.
	o.Gen = 2
	_, err = t.Put(s.ctx, o, body(o, func() error { return nil }), nobody)
	require.NoError(s, err)
	// Verification ends a read as soon as it finds something, with other ranges under way.
	_, err = t.Get(s.ctx, o, pieces(2), func([]byte, int64) error { return broken }, nobody)
	assert.ErrorIs(s, err, broken)
	_, err = t.Get(ctx, o, pieces(1), func([]byte, int64) error { return nil }, nobody)
	assert.ErrorIs(s, err, context.Canceled)
	s.get(o)
}
