package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
)

// streamed returns the tier as a tiers.Streamer, or nil if it takes requests at offsets.
func streamed(tier tiers.Tier) tiers.Streamer {
	if s, ok := tier.(tiers.Streamer); ok && tier.Traits().Stream {
		return s
	}
	return nil
}

// get reads an object from a tiers.Streamer, in as many buffers as it can use, and verifies each
// piece.
func (t *Transfer) get(ctx context.Context, s tiers.Streamer, done tiers.ChunkFunc,
	o tiers.Object) (tm tiers.Timing, err error) {
	defer recoverInto(&err)
	in := sideOf(tiers.Read, s, done)
	op := &operation{t: t, ctx: ctx, objs: []tiers.Object{o}, ext: tiers.One{}, in: in,
		chunk: int64(t.Chunk)}
	if err := op.validate(o, buffer.PageSize); err != nil {
		return tm, err
	}
	from := t.Clock.Now()
	n := min(t.Depth, s.Streams(o), t.Pool.Buffers())
	bufs, err := t.Pool.Get(ctx, n, make([]tiers.Buffer, 0, n))
	admission := t.Clock.Now() - from
	if err != nil {
		return tiers.Timing{Admission: admission},
			fmt.Errorf("wait for the buffers of entry %s: %w", o.Key, err)
	}
	defer t.Pool.Put(bufs...)
	for i := range bufs { // a pool's buffers may be larger than this transfer's pieces
		bufs[i].B = bufs[i].B[:t.Chunk]
	}
	from = t.Clock.Now()
	tm, err = s.Get(ctx, o, bufs, func(p []byte, off int64) error {
		return op.check(p, off)
	}, in.done)
	tm.Host = t.Clock.Now() - from - tm.Device
	tm.Admission = admission
	return tm, err
}

// put writes an object to a tiers.Streamer. It needs no buffers of the pool: the tier reads the bytes
// into its own memory.
func (t *Transfer) put(ctx context.Context, s tiers.Streamer, done tiers.ChunkFunc,
	o tiers.Object, body func(off, n int64) io.ReadSeeker) (tm tiers.Timing, err error) {
	defer recoverInto(&err)
	out := sideOf(tiers.Write, s, done)
	op := &operation{t: t, ctx: ctx, out: out, chunk: int64(t.Chunk)}
	if err := op.validate(o, buffer.PageSize); err != nil {
		return tm, err
	}
	if body == nil {
		body = func(off, n int64) io.ReadSeeker {
			return section(&generated{c: t.Content, o: o}, off, n)
		}
	}
	from := t.Clock.Now()
	tm, err = s.Put(ctx, o, body, out.done)
	tm.Generation = t.Clock.Now() - from - tm.Device
	return tm, err
}

// demote is Move to a tiers.Streamer. It reads the source while it sends, and reads again what it
// sends again.
func (t *Transfer) demote(ctx context.Context, from tiers.Tier, to tiers.Streamer, o tiers.Object,
	read, write tiers.ChunkFunc) (rd, wr tiers.Timing, err error) {
	if streamed(from) != nil || from.Traits().Align > 1 {
		return rd, wr, fmt.Errorf("move entry %s from %s to %s: %w", o.Key,
			from.Traits().Description, to.Traits().Description, errors.ErrUnsupported)
	}
	up := &above{side: sideOf(tiers.Read, from, read), clock: t.Clock}
	defer func() { rd.Device = up.leave() }()
	up.busy.Enter(t.Clock.Now())
	r, err := from.Open(ctx, o)
	up.busy.Exit(t.Clock.Now())
	if err != nil {
		return rd, wr, &SourceError{err}
	}
	up.side.to = r
	wr, err = t.put(ctx, to, write, o, func(off, n int64) io.ReadSeeker {
		return section(&copied{above: up}, off, n)
	})
	wr.Generation = 0 // no content was generated: that time is the source's
	if failed := up.failed(); failed != nil {
		err = &SourceError{failed}
	}
	return rd, wr, errors.Join(err, r.Close())
}

// section is a range of an object that is read sequentially, and from any offset again after a failed
// attempt. It is no io.ReaderAt, because only one goroutine may use object.
func section(object io.ReaderAt, off, n int64) io.ReadSeeker {
	return struct{ io.ReadSeeker }{io.NewSectionReader(object, off, n)}
}

// generated is an object's content. It is generated in the memory that is sent, so that no byte is
// copied and no buffer is held while a slow connection sends.
type generated struct {
	c      *content.Content
	o      tiers.Object
	stream content.Stream
}

// ReadAt generates bytes in p.
func (g *generated) ReadAt(p []byte, off int64) (int, error) {
	g.stream.Fill(g.c, p, g.o, off)
	return len(p), nil
}

// above is the upper tier of a demotion. The senders of the parts read its ranges concurrently; one
// of their reads may end after the operation.
type above struct {
	side  side
	clock clock.Clock
	busy  clock.Busy

	mu   sync.Mutex
	err  error // of the first read that failed
	left bool  // the move has returned: no more reports
}

// failed returns the error of the first failed read. The error that the sender returns wraps it
// differently.
func (a *above) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// leave ends the move and returns how long the tier was busy.
func (a *above) leave() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = true
	return a.busy.Total()
}

// read submits one request to the tier and waits for it, also if the operation has ended: then only
// this goroutine waits for the source.
func (a *above) read(req *tiers.IO, back <-chan struct{}) error {
	asked := a.clock.Now()
	a.busy.Enter(asked)
	a.side.to.Submit(req)
	<-back
	now := a.clock.Now()
	a.busy.Exit(now)
	a.mu.Lock()
	defer a.mu.Unlock()
	if req.Err != nil {
		a.err = cmp.Or(a.err, req.Err)
		return req.Err
	}
	if !a.left { // a repeated read counts, too: the source has executed it
		c := chunk(tiers.Read, req, asked, now)
		c.Bytes = int64(req.N)
		a.side.done(c)
	}
	return nil
}

// copied is an object in the upper tier. It reuses one request: a part is read in pieces of some KiB.
type copied struct {
	above *above
	req   tiers.IO
	back  chan struct{}
}

// ReadAt reads bytes into p.
func (c *copied) ReadAt(p []byte, off int64) (int, error) {
	if c.back == nil {
		c.back = make(chan struct{}, 1)
		c.req.Done = func(*tiers.IO) { c.back <- struct{}{} }
	}
	c.req.Buf, c.req.Off, c.req.N = tiers.Buffer{B: p}, off, len(p)
	c.req.Begun, c.req.Ended = 0, 0
	if err := c.above.read(&c.req, c.back); err != nil {
		return 0, err
	}
	return len(p), nil
}
