package objecttier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/objecttier/store"
)

// ErrLost is the error of a read if the store no longer has a written object.
var ErrLost = errors.New("the store has lost an object that was written")

// body is the body of a PUT. It generates the object's bytes in the send buffer, for each attempt anew.
type body struct{ *put }

// ReadAt generates bytes. The request is not in flight during this time. ReadAt runs on a goroutine
// of net/http, where a panic would end the process.
func (b body) ReadAt(p []byte, off int64) (n int, err error) {
	b.exit()
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, &tiers.PanicError{Value: v, Stack: debug.Stack()}
		}
		b.enter()
	}()
	return len(p), b.src.Fill(b.o, off, p)
}

// transfer is a Put or Get in progress.
type transfer struct {
	*Tier
	o     tiers.Object
	key   string
	turns turns
	busy  clock.Busy

	mu   sync.Mutex
	call *tiers.Call
}

// put is a Put in progress.
type put struct {
	transfer
	ctx   context.Context
	src   tiers.Source
	acked int64 // bytes of acknowledged parts, guarded by mu
}

// enter and exit enclose each request, also the requests that undo a write. They measure the time with at
// least one request in flight or waiting for a turn.
func (m *transfer) enter() { m.busy.Enter(m.clock.Now()) }
func (m *transfer) exit()  { m.busy.Exit(m.clock.Now()) }

// observe reports progress. Parts and ranges may end concurrently.
func (m *transfer) observe(c tiers.Chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.call.Observe != nil {
		m.call.Observe(c)
	}
}

// Put implements tiers.Tier for the first of the objects. It needs no buffers of the pool. Clear
// repeats the requests that undo a failed write.
func (t *Tier) Put(ctx context.Context, c *tiers.Call, objs []tiers.Object, src tiers.Source,
) error {
	return t.put(ctx, c, objs[0], src, t.turns)
}

func (t *Tier) put(ctx context.Context, c *tiers.Call, o tiers.Object, src tiers.Source,
	turn turns) (err error) {
	c.Timing, c.Done = tiers.Timing{}, 1
	if err := t.claim(o); err != nil {
		return err
	}
	p := &put{transfer: transfer{Tier: t, o: o, key: t.key(o), turns: turn, call: c}, ctx: ctx, src: src}
	exists := false
	defer func() { t.settle(o, exists) }()
	begun := t.clock.Now()
	if o.Size <= t.cfg.MultipartAbove {
		err = p.send(ctx, 0, o.Size, func(body store.Body) (store.Request, error) {
			return t.client.Put(ctx, p.key, o.Size, body)
		})
	} else {
		err = p.inParts()
	}
	c.Timing.Device = p.busy.Total()
	c.Timing.Generation = t.clock.Now() - begun - c.Timing.Device
	if exists = err == nil; !exists {
		err = t.fail("write", o, -1, err)
	}
	return err
}

// acknowledged reports an acknowledged request. The time of the request includes all attempts and the pauses
// between them. held is the wait for a turn before the request.
func (p *put) acknowledged(off int64, r store.Request, held time.Duration, flush bool) {
	p.mu.Lock()
	p.acked += r.Bytes
	p.mu.Unlock()
	p.observe(tiers.Chunk{Op: tiers.Write, Flush: flush, Bytes: r.Bytes, Off: off, Begun: r.Begun,
		Ended: r.Ended, Submitted: r.Begun, Completed: r.Ended, Held: held, Retried: r.Attempts > 1})
}

// send waits for a turn and makes a request with n bytes of the object from an offset on.
func (p *put) send(ctx context.Context, off, n int64,
	request func(body store.Body) (store.Request, error)) error {
	p.enter()
	defer p.exit()
	held, err := p.turns.take(ctx, p.clock)
	if err != nil {
		return err
	}
	defer p.turns.leave()
	r, err := request(func() io.ReadSeeker { return io.NewSectionReader(body{p}, off, n) })
	switch {
	case err == nil:
		p.acknowledged(off, r, held, false)
	case r.AllSent && r.Op == store.Put:
		p.undo() // the store may have created the object, because it has received the whole body
	}
	return err
}

// undo deletes an object that a failed request may have created. The store may execute that request
// after the deletion, so Clear waits and deletes again.
func (p *put) undo() {
	p.Tier.mu.Lock()
	p.cut = p.clock.Now()
	p.Tier.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
	defer cancel()
	_ = p.client.Delete(ctx, p.key)
}

// partSize returns the size of an object's parts: the configured size or, if S3 does not allow so many
// parts, the smallest sufficient size in whole MiB.
func (t *Tier) partSize(size int64) int64 {
	least := (size + mostParts - 1) / mostParts
	if least <= t.cfg.PartSize {
		return t.cfg.PartSize
	}
	return tiers.AlignUp(least, 1<<20)
}

// inParts writes the object in an upload of parts. The object is visible when the upload is completed.
// After a failure inParts aborts the upload, and subtracts the bytes that it has reported.
func (p *put) inParts() (err error) {
	p.enter()
	defer p.exit()
	id, err := p.client.Create(p.ctx, p.key)
	if err != nil {
		return err // if only the answer was lost, Clear finds the upload
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.abort(id))
		}
	}()
	// Parts begin in order and end in any order. The store joins them by their numbers.
	size := p.partSize(p.o.Size)
	parts := make([]store.Part, pieces(p.o.Size, size))
	p.exit() // between parts there may be no request in flight
	err = parallel(p.ctx, len(parts), p.cfg.Depth, func(ctx context.Context, i int) error {
		off := int64(i) * size
		n := min(size, p.o.Size-off)
		return p.send(ctx, off, n, func(body store.Body) (r store.Request, err error) {
			parts[i], r, err = p.client.PutPart(ctx, p.key, id, i+1, n, body)
			return r, err
		})
	})
	p.enter()
	if err != nil {
		return err
	}
	r, err := p.client.Complete(p.ctx, p.key, id, p.o.Size, parts)
	if err == nil {
		p.acknowledged(0, r, 0, true)
		return nil
	}
	// A store answers after joining the parts, which can take longer than the time limit. So the
	// object may exist after a failure.
	p.undo()
	return err
}

// abort ends an upload that failed, and subtracts its reported bytes. A part in flight may reach the
// store after the abort, so Clear repeats the abort.
func (p *put) abort(id string) error {
	p.Tier.mu.Lock()
	p.aborted = append(p.aborted, store.Upload{Key: p.key, ID: id})
	p.cut = p.clock.Now()
	p.Tier.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
	defer cancel()
	err := p.client.Abort(ctx, p.key, id)
	if p.acked > 0 { // all parts have ended
		p.wasted.Add(p.acked)
		now := p.clock.Now()
		p.observe(tiers.Chunk{Op: tiers.Write, Piece: true, Bytes: -p.acked, Begun: now, Ended: now,
			Submitted: now, Completed: now})
	}
	return err
}

// rangeSize returns the number of bytes that one request reads of an object.
func (t *Tier) rangeSize(o tiers.Object) int64 {
	return max(1, min(o.Size, cmp.Or(t.cfg.RangeSize, o.Size)))
}

// pieces returns the number of pieces of n bytes in size. The last piece may be shorter.
func pieces(size, n int64) int { return int((size + n - 1) / n) }

// Get implements tiers.Tier for the first of the objects. It uses one buffer of the pool per range in
// flight. It reports the bytes of each piece when they arrive, and the request with its last piece. A
// request for 32 MiB can take seconds: at the end of a window the pieces that have arrived count.
func (t *Tier) Get(ctx context.Context, c *tiers.Call, objs []tiers.Object, dst tiers.Sink) error {
	o := objs[0]
	c.Timing, c.Done = tiers.Timing{}, 1
	from := t.clock.Now()
	n := min(pieces(o.Size, t.rangeSize(o)), t.cfg.Depth, t.cfg.Pool.Buffers())
	bufs, err := t.cfg.Pool.Get(ctx, n, make([]tiers.Buffer, 0, n))
	admission := t.clock.Now() - from
	if err != nil {
		c.Timing.Admission = admission
		return fmt.Errorf("wait for the buffers of entry %s: %w", o.Key, err)
	}
	defer t.cfg.Pool.Put(bufs...)
	for i := range bufs { // the buffers may be larger than a piece
		bufs[i].B = bufs[i].B[:t.cfg.Chunk]
	}
	err = t.get(ctx, c, o, bufs, dst, t.turns)
	c.Timing.Admission = admission
	return err
}

func (t *Tier) get(ctx context.Context, c *tiers.Call, o tiers.Object, bufs []tiers.Buffer,
	dst tiers.Sink, turn turns) (err error) {
	c.Timing, c.Done = tiers.Timing{}, 1
	if err := t.hold(o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.drop(o)) }()
	m := &transfer{Tier: t, o: o, key: t.key(o), turns: turn, call: c}
	started := t.clock.Now()
	each := t.rangeSize(o)
	free := make(chan tiers.Buffer, len(bufs))
	for _, b := range bufs {
		free <- b
	}
	err = parallel(ctx, pieces(o.Size, each), len(bufs), func(ctx context.Context, i int) error {
		buf := <-free
		defer func() { free <- buf }()
		off := int64(i) * each
		return m.receive(ctx, buf, dst, store.Range{Off: off, N: min(each, o.Size-off), Size: o.Size,
			Always: t.cfg.AlwaysRange})
	})
	c.Timing.Device = m.busy.Total()
	c.Timing.Host = t.clock.Now() - started - c.Timing.Device
	// hold only accepts an object that was written and not removed, so the store has lost it.
	if errors.Is(err, store.ErrNoKey) {
		t.lost.Add(1)
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	if err != nil {
		err = t.fail("read", o, -1, err)
	}
	return err
}

// receive waits for a turn and reads a range of the object.
func (m *transfer) receive(ctx context.Context, buf tiers.Buffer, dst tiers.Sink,
	r store.Range) error {
	m.enter() // the busy time includes the pauses between attempts
	defer m.exit()
	held, err := m.turns.take(ctx, m.clock)
	if err != nil {
		return err
	}
	defer m.turns.leave()
	begun := m.clock.Now()
	_, err = m.client.Get(ctx, m.key, r, buf.B, func(p []byte, off int64, retried bool) error {
		now := m.clock.Now()
		c := tiers.Chunk{Op: tiers.Read, Bytes: int64(len(p)), Begun: begun, Ended: now,
			Submitted: begun, Completed: now, Held: held, Retried: retried}
		if off+int64(len(p)) < r.Off+r.N { // only the last piece reports the request's times
			c.Piece, c.Begun, c.Submitted, c.Held = true, now, now, 0
		}
		m.observe(c)
		m.exit()
		defer m.enter()
		return dst.Take(m.o, off, p)
	})
	return err
}

// Plain returns a tier for plain I/O: without the limit Requests, and with one request in flight per
// read, through the given buffer. Writes use the tier's depth. Only one goroutine at a time may read.
func (t *Tier) Plain(buf tiers.Buffer) tiers.Tier { return plain{t, buf} }

type plain struct {
	*Tier
	buf tiers.Buffer
}

// Put implements tiers.Tier.
func (p plain) Put(ctx context.Context, c *tiers.Call, objs []tiers.Object, src tiers.Source,
) error {
	return p.put(ctx, c, objs[0], src, nil)
}

// Get implements tiers.Tier.
func (p plain) Get(ctx context.Context, c *tiers.Call, objs []tiers.Object, dst tiers.Sink) error {
	return p.get(ctx, c, objs[0], []tiers.Buffer{p.buf}, dst, nil)
}

// Lookup sends a HEAD for one object after the other, up to the first missing object, as an engine does
// before it reads. It returns the number of objects before that.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	for _, o := range objs {
		if _, err := t.turns.take(ctx, t.clock); err != nil {
			return found, t.fail("look up", o, -1, err)
		}
		size, err := t.client.Head(ctx, t.key(o))
		t.turns.leave()
		switch {
		case errors.Is(err, store.ErrNoKey):
			return found, nil
		case err != nil:
			return found, t.fail("look up", o, -1, err)
		case size != o.Size:
			return found, t.fail("look up", o, -1, fmt.Errorf("the store has %d bytes of it "+
				"instead of %d", size, o.Size))
		}
		found++
	}
	return found, nil
}

// turns limits the requests in flight, like the threads of an inference engine. Requests get turns in FIFO
// order. nil means no limit. A request that waits for a turn is in the tier, but not yet in the store.
type turns chan struct{}

// leave gives the turn to the request that has waited longest.
func (t turns) leave() {
	if t != nil {
		<-t
	}
}

// take waits for a turn, and returns the time of the wait. It returns an error if ctx ends.
func (t turns) take(ctx context.Context, clk clock.Clock) (held time.Duration, err error) {
	if t == nil {
		return 0, nil
	}
	begun := clk.Now()
	select {
	case t <- struct{}{}:
		return clk.Now() - begun, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// parallel calls do for i from 0 to n-1. The calls are started in this order, and up to atOnce calls run at a
// time. After a failure parallel starts no more calls, cancels the context of the running calls, waits for
// them and returns the failure. A panic becomes a PanicError.
func parallel(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	one := func(ctx context.Context, i int) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &tiers.PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		return do(ctx, i)
	}
	if n == 1 {
		return one(ctx, 0)
	}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := 0; i < n && each.Err() == nil; i++ {
		group.Go(func() error { return one(each, i) })
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}
