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

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/objecttier/store"
)

// LostError is the error of a read if the store no longer has a written object.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return "the store has lost an object that was written: " + e.Err.Error()
}

// Unwrap returns the store's answer.
func (e *LostError) Unwrap() error { return e.Err }

// body is the body of a PUT. It generates the object's bytes in the send buffer, and again for another
// attempt.
type body struct{ *put }

// ReadAt generates bytes. Its time is not in the busy time of the store. It runs on a goroutine of
// net/http, where a panic would end the process.
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

// put is a Put in progress.
type put struct {
	t    *Tier
	ctx  context.Context
	o    tiers.Object
	key  string
	turn turns
	src  tiers.Source
	busy clock.Busy

	mu    sync.Mutex
	call  *tiers.Call
	acked int64 // bytes of acknowledged parts
}

// Put implements tiers.Tier for the first of the objects. It needs no buffers of the pool. If the store
// does not answer the requests that undo a failed write, Clear repeats them.
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
	p := &put{t: t, ctx: ctx, o: o, key: t.key(o), turn: turn, src: src, call: c}
	exists := false
	defer func() { t.settle(o, exists) }()
	begun := t.clock.Now()
	if o.Size <= t.cfg.MultipartAbove {
		err = p.whole()
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

// enter and exit enclose each request, including requests that undo a write. They measure the time with
// at least one request in flight.
func (p *put) enter() { p.busy.Enter(p.t.clock.Now()) }
func (p *put) exit()  { p.busy.Exit(p.t.clock.Now()) }

// report reports an acknowledged request. Its time includes all attempts and pauses. held is the wait
// for a turn before it. Parts may end concurrently.
func (p *put) report(off int64, r store.Request, held time.Duration, flush bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked += r.Bytes
	p.observe(tiers.Chunk{Op: tiers.Write, Flush: flush, Bytes: r.Bytes, Off: off, Begun: r.Begun,
		Ended: r.Ended, Asked: r.Begun, Done: r.Ended, Held: held})
}

func (p *put) observe(c tiers.Chunk) {
	if p.call.Observe != nil {
		p.call.Observe(c)
	}
}

// send waits for a turn and makes a request with n bytes of the object from an offset on.
func (p *put) send(ctx context.Context, off, n int64,
	request func(body store.Body) (store.Request, error)) error {
	p.enter()
	defer p.exit()
	held, err := p.turn.take(ctx, p.t.clock)
	if err != nil {
		return err
	}
	defer p.turn.leave()
	r, err := request(func() io.ReadSeeker { return io.NewSectionReader(body{p}, off, n) })
	switch {
	case err == nil:
		p.report(off, r, held, false)
	case r.AllSent && r.Op == store.Put:
		p.undo() // the store may have made the object; after an incomplete body it has not
	}
	return err
}

// whole writes the object in one PUT.
func (p *put) whole() error {
	return p.send(p.ctx, 0, p.o.Size, func(body store.Body) (store.Request, error) {
		return p.t.client.Put(p.ctx, p.key, p.o.Size, body)
	})
}

// undo deletes an object that a failed request may have created. The store may execute that request
// after the deletion, so Clear waits and deletes again.
func (p *put) undo() {
	p.t.mu.Lock()
	p.t.cut = p.t.clock.Now()
	p.t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
	defer cancel()
	_ = p.t.client.Delete(ctx, p.key)
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
// After a failure inParts aborts the upload and takes back its bytes.
func (p *put) inParts() (err error) {
	p.enter()
	id, err := p.t.client.Create(p.ctx, p.key)
	p.exit()
	if err != nil {
		return err // if only the answer was lost, Clear finds the upload
	}
	defer func() {
		if err == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
		defer cancel()
		// A part in flight may reach the store after the abort, so Clear repeats the abort.
		p.t.mu.Lock()
		p.t.aborted = append(p.t.aborted, store.Upload{Key: p.key, ID: id})
		p.t.cut = p.t.clock.Now()
		p.t.mu.Unlock()
		p.enter()
		err = errors.Join(err, p.t.client.Abort(ctx, p.key, id))
		p.exit()
		p.takeBack()
	}()
	// Parts begin in order and end in any order. The store joins them by their numbers.
	size := p.t.partSize(p.o.Size)
	n := pieces(p.o.Size, size)
	parts := make([]store.Part, n)
	err = parallel(p.ctx, n, p.t.cfg.Depth, func(ctx context.Context, _, i int) error {
		off := int64(i) * size
		n := min(size, p.o.Size-off)
		return p.send(ctx, off, n, func(body store.Body) (r store.Request, err error) {
			parts[i], r, err = p.t.client.PutPart(ctx, p.key, id, i+1, n, body)
			return r, err
		})
	})
	if err != nil {
		return err
	}
	p.enter()
	defer p.exit()
	r, err := p.t.client.Complete(p.ctx, p.key, id, p.o.Size, parts)
	if err == nil {
		p.report(0, r, 0, true)
		return nil
	}
	// A store answers after joining the parts, which can take longer than the time limit. So the
	// object may exist after a failure.
	p.undo()
	return err
}

// takeBack subtracts the reported bytes of a failed write.
func (p *put) takeBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acked == 0 {
		return
	}
	p.t.wasted.Add(p.acked)
	now := p.t.clock.Now()
	p.observe(tiers.Chunk{Op: tiers.Write, Piece: true, Bytes: -p.acked, Begun: now, Ended: now,
		Asked: now, Done: now})
}

// rangeSize returns the number of bytes that one request reads of an object.
func (t *Tier) rangeSize(o tiers.Object) int64 {
	return max(1, min(o.Size, cmp.Or(t.cfg.RangeSize, o.Size)))
}

// ranges returns the number of requests that read an object.
func (t *Tier) ranges(o tiers.Object) int { return pieces(o.Size, t.rangeSize(o)) }

// pieces returns the number of pieces of n bytes in size. The last piece may be shorter.
func pieces(size, n int64) int { return int((size + n - 1) / n) }

// Get implements tiers.Tier for the first of the objects. It uses one buffer of the pool per range in
// flight. It reports the bytes of each piece when they arrive, and the request with its last piece. An
// object of 32 MiB can take seconds; at the end of a window only the missing pieces do not count.
func (t *Tier) Get(ctx context.Context, c *tiers.Call, objs []tiers.Object, dst tiers.Sink) error {
	o := objs[0]
	c.Timing, c.Done = tiers.Timing{}, 1
	from := t.clock.Now()
	n := min(t.ranges(o), t.cfg.Depth, t.cfg.Pool.Buffers())
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
	var busy clock.Busy
	var mu sync.Mutex // of Observe
	report := func(chunk tiers.Chunk) {
		if c.Observe != nil {
			mu.Lock()
			defer mu.Unlock()
			c.Observe(chunk)
		}
	}
	started := t.clock.Now()
	each := t.rangeSize(o)
	err = parallel(ctx, t.ranges(o), len(bufs), func(ctx context.Context, worker, i int) error {
		off := int64(i) * each
		part := store.Range{Off: off, N: min(each, o.Size-off), Size: o.Size,
			Always: t.cfg.AlwaysRange}
		// Pauses between attempts are the store's time, too.
		busy.Enter(t.clock.Now())
		defer func() { busy.Exit(t.clock.Now()) }()
		held, err := turn.take(ctx, t.clock)
		if err != nil {
			return err
		}
		defer turn.leave()
		begun := t.clock.Now()
		piece := func(p []byte, off int64) error {
			now := t.clock.Now()
			c := tiers.Chunk{Op: tiers.Read, Bytes: int64(len(p)), Begun: begun, Ended: now,
				Asked: begun, Done: now, Held: held}
			if off+int64(len(p)) < part.Off+part.N { // only the last piece reports the request's times
				c.Piece, c.Begun, c.Asked, c.Held = true, now, now, 0
			}
			report(c)
			busy.Exit(now)
			defer func() { busy.Enter(t.clock.Now()) }()
			return dst.Take(o, off, p)
		}
		_, err = t.client.Get(ctx, t.key(o), part, bufs[worker].B, piece)
		return err
	})
	c.Timing.Device = busy.Total()
	c.Timing.Host = t.clock.Now() - started - c.Timing.Device
	if err != nil {
		// hold only accepts an object that was written and not removed, so the store has lost it.
		if errors.Is(err, store.ErrNoKey) {
			t.lost.Add(1)
			err = &LostError{err}
		}
		err = t.fail("read", o, -1, err)
	}
	return err
}

// Plain returns a tier for plain I/O: without the limit Requests, and with one request in flight per
// read, through the given buffer. Only one goroutine at a time may read.
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
