package objecttier

import (
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

// LostError is a read of an object that was written and that the store does not have.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return "the store has lost an object that was written: " + e.Err.Error()
}

// Unwrap returns the store's answer.
func (e *LostError) Unwrap() error { return e.Err }

// timed has a busy time exclude what the caller does within a request.
type timed struct {
	io.ReadSeeker
	busy  *clock.Busy
	clock clock.Clock
}

// Read is the caller's: nothing waits for the store meanwhile. It runs on a goroutine of net/http,
// where a panic would end the process.
func (r timed) Read(p []byte) (n int, err error) {
	r.busy.Exit(r.clock.Now())
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, &tiers.PanicError{Value: v, Stack: debug.Stack()}
		}
		r.busy.Enter(r.clock.Now())
	}()
	return r.ReadSeeker.Read(p)
}

// put is a Put under way.
type put struct {
	t    *Tier
	ctx  context.Context
	o    tiers.Object
	key  string
	turn turns
	body func(off, n int64) io.ReadSeeker
	busy clock.Busy

	mu    sync.Mutex
	done  tiers.ChunkFunc
	acked int64 // bytes of parts that the store has
	parts []store.Part
}

// Put implements tiers.Streamer. What it could not undo, because the store does not answer, is
// found by Clear, or by the next start.
func (t *Tier) Put(ctx context.Context, o tiers.Object, body func(off, n int64) io.ReadSeeker,
	done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	return t.put(ctx, o, body, done, t.turns)
}

func (t *Tier) put(ctx context.Context, o tiers.Object, body func(off, n int64) io.ReadSeeker,
	done tiers.ChunkFunc, turn turns) (tm tiers.Timing, err error) {
	if err := t.owner.check(); err != nil {
		return tm, t.fail("write", o, -1, err)
	}
	if err := t.claim(o); err != nil {
		return tm, err
	}
	p := &put{t: t, ctx: ctx, o: o, key: t.key(o), turn: turn, body: body, done: done}
	there := false
	// Its name is taken from the first moment on, and free again whatever happens.
	defer func() { t.settle(o, there) }()
	switch pieces := t.pieces(o); {
	case len(pieces) > 1:
		err = p.inPieces(pieces)
	case o.Size <= t.cfg.MultipartAbove:
		err = p.whole(ctx, p.key, 0, o.Size)
	default:
		err = p.inParts()
	}
	there = err == nil
	if err != nil {
		err = t.fail("write", o, -1, err)
	}
	return tiers.Timing{Device: p.busy.Total()}, err
}

// stream is a part of the body, timed.
func (p *put) stream(off, n int64) store.Body {
	return func() io.ReadSeeker { return timed{p.body(off, n), &p.busy, p.t.clock} }
}

// enter and exit are around each request, those that undo something included: with several under
// way the store has one as long as any of them is.
func (p *put) enter() { p.busy.Enter(p.t.clock.Now()) }
func (p *put) exit()  { p.busy.Exit(p.t.clock.Now()) }

// tell tells of a request that the store has acknowledged: its bytes, and for how long it had them,
// attempts and pauses included, after it was held back. Parts end side by side, so that one is told
// at a time.
func (p *put) tell(off int64, r store.Request, held time.Duration, flush bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := tiers.Chunk{Op: tiers.Write, Flush: flush, Bytes: r.Bytes, Off: off, Begun: r.Begun,
		Ended: r.Ended, Asked: r.Begun, Done: r.Ended, Held: held}
	p.acked += r.Bytes
	p.done(c)
}

// whole is one PUT, of n bytes from an offset on.
func (p *put) whole(ctx context.Context, key string, off, n int64) error {
	p.enter()
	defer p.exit()
	held, err := p.turn.take(ctx, p.t.clock)
	if err != nil {
		return err
	}
	defer p.turn.leave()
	_, r, err := p.t.client.Put(ctx, key, n, p.stream(off, n), store.Condition{})
	if err == nil {
		p.tell(off, r, held, false)
		return nil
	}
	// One of which bytes were missing cannot have become an object: its length was told first.
	if r.AllSent { // the store may have it, and only its answer was lost
		p.t.cut.Store(int64(p.t.clock.Now()))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
		defer cancel()
		_ = p.t.client.Delete(ctx, key) // Clear looks for what is left
	}
	return err
}

// inPieces is a PUT for each object of an entry. When one fails the others go, too, and what was
// told of them is taken back.
func (p *put) inPieces(pieces []tiers.Object) error {
	err := beside(p.ctx, len(pieces), p.t.cfg.Depth, func(ctx context.Context, _, i int) error {
		return p.whole(ctx, p.t.key(pieces[i]), int64(i)*p.t.cfg.Split, pieces[i].Size)
	})
	if err == nil || p.acked == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
	defer cancel()
	p.enter()
	_, _ = p.t.deleteKeys(ctx, []tiers.Object{p.o}, func(tiers.Object) {})
	p.exit()
	p.takeBack()
	return err
}

// partSize is that of the parts of an object: as configured, or so much larger that there are no
// more parts than S3 allows, in whole MiB.
func (t *Tier) partSize(size int64) int64 {
	least := (size + mostParts - 1) / mostParts
	if least <= t.cfg.PartSize {
		return t.cfg.PartSize
	}
	return tiers.AlignUp(least, 1<<20)
}

// inParts is an upload, whose object is visible when it is completed. One that fails is aborted,
// and what was told of it is taken back.
func (p *put) inParts() (err error) {
	p.enter()
	id, attempts, err := p.t.client.Create(p.ctx, p.key)
	p.exit()
	// That upload belongs to nobody, and costs room until it is aborted: Clear looks for it.
	if attempts > 1 || err != nil { // an answer may have been lost, with the id of an upload
		p.t.owner.litter.Store(true)
	}
	if err != nil {
		return err
	}
	completed := false
	defer func() {
		if completed {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
		defer cancel()
		p.enter()
		failed := p.t.client.Abort(ctx, p.key, id)
		p.exit()
		if failed != nil {
			p.t.owner.litter.Store(true)
			err = errors.Join(err, failed)
		}
		p.takeBack()
	}()
	// Parts are taken in their order and end in any: the store puts them together by number.
	size := p.t.partSize(p.o.Size)
	n := int((p.o.Size + size - 1) / size)
	p.parts = make([]store.Part, n)
	err = beside(p.ctx, n, p.t.cfg.Depth, func(ctx context.Context, _, i int) error {
		off := int64(i) * size
		p.enter()
		defer p.exit()
		held, err := p.turn.take(ctx, p.t.clock)
		if err != nil {
			return err
		}
		defer p.turn.leave()
		part, r, err := p.t.client.PutPart(ctx, p.key, id, i+1, min(size, p.o.Size-off),
			p.stream(off, min(size, p.o.Size-off)))
		if err == nil {
			p.tell(off, r, held, false)
			p.parts[i] = part
		}
		return err
	})
	if err != nil {
		return err
	}
	p.enter()
	defer p.exit()
	r, err := p.t.client.Complete(p.ctx, p.key, id, p.o.Size, p.parts)
	if err == nil {
		completed = true
		p.tell(0, r, 0, true)
		return nil
	}
	// It may have made the object all the same: a store answers when it has put parts together,
	// which can take longer than anybody waits.
	p.t.cut.Store(int64(p.t.clock.Now()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), cleanup)
	defer cancel()
	_ = p.t.client.Delete(ctx, p.key)
	return err
}

// takeBack tells that the bytes of an upload that failed have not been written.
func (p *put) takeBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acked == 0 {
		return
	}
	p.t.wasted.Add(p.acked)
	now := p.t.clock.Now()
	p.done(tiers.Chunk{Op: tiers.Write, Piece: true, Bytes: -p.acked, Begun: now, Ended: now,
		Asked: now, Done: now})
}

// span is what one request reads of an entry: a range of an object that begins at an offset of it.
type span struct {
	key  string
	base int64
	store.Range
}

// spans are the requests that read an entry; engines read whole objects.
func (t *Tier) spans(o tiers.Object) (all []span) {
	base := int64(0)
	for _, piece := range t.pieces(o) {
		each := piece.Size
		if t.cfg.RangeSize > 0 {
			each = min(each, t.cfg.RangeSize)
		}
		for off := int64(0); off < piece.Size; off += each {
			all = append(all, span{t.key(piece), base, store.Range{Off: off,
				N: min(each, piece.Size-off), Of: piece.Size, Always: t.cfg.AlwaysRange}})
		}
		base += piece.Size
	}
	return all
}

// Streams implements tiers.Streamer: a buffer for each range that may be under way.
func (t *Tier) Streams(o tiers.Object) int {
	return min(len(t.spans(o)), t.cfg.Depth)
}

// Get implements tiers.Streamer. Bytes are told as pieces come, and the request with its last one:
// an object of 32 MiB takes seconds, and a window's end would cut off all of it.
func (t *Tier) Get(ctx context.Context, o tiers.Object, bufs []tiers.Buffer,
	sink func(p []byte, off int64) error, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	return t.get(ctx, o, bufs, sink, done, t.turns)
}

func (t *Tier) get(ctx context.Context, o tiers.Object, bufs []tiers.Buffer,
	sink func(p []byte, off int64) error, done tiers.ChunkFunc,
	turn turns) (tm tiers.Timing, err error) {
	if err := t.hold(o); err != nil {
		return tm, err
	}
	defer func() { err = errors.Join(err, t.drop(o)) }()
	var busy clock.Busy
	var mu sync.Mutex // of done
	tell := func(c tiers.Chunk) {
		mu.Lock()
		defer mu.Unlock()
		done(c)
	}
	spans := t.spans(o)
	err = beside(ctx, len(spans), len(bufs), func(ctx context.Context, worker, i int) error {
		s := &spans[i]
		end := s.Off + s.N
		// Pauses between attempts are the store's time, too: a request waits for them.
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
			if off+int64(len(p)) < end { // the request's time is told with its last piece
				c.Piece, c.Begun, c.Asked, c.Held = true, now, now, 0
			}
			tell(c)
			busy.Exit(now)
			defer func() { busy.Enter(t.clock.Now()) }()
			return sink(p, s.base+off)
		}
		_, err = t.client.Get(ctx, s.key, s.Range, bufs[worker].B, piece)
		return err
	})
	if err != nil {
		// It was written and nobody has removed it, or hold would have refused.
		if errors.Is(err, store.ErrNoKey) {
			t.lost.Add(1)
			err = &LostError{err}
		}
		err = t.fail("read", o, -1, err)
	}
	return tiers.Timing{Device: busy.Total()}, err
}

// Lookup asks the store which of some objects it has, one after the other as an engine does before
// it reads them, until the first that it lacks. It returns how many there are before that.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	for _, o := range objs {
		for _, piece := range t.pieces(o) {
			if _, err := t.turns.take(ctx, t.clock); err != nil {
				return found, t.fail("look up", o, -1, err)
			}
			info, err := t.client.Head(ctx, t.key(piece))
			t.turns.leave()
			switch {
			case errors.Is(err, store.ErrNoKey):
				return found, nil
			case err != nil:
				return found, t.fail("look up", o, -1, err)
			case info.Size != piece.Size:
				return found, t.fail("look up", o, -1, fmt.Errorf("the store has %d bytes of it "+
					"instead of %d", info.Size, piece.Size))
			}
		}
		found++
	}
	return found, nil
}

var _ tiers.Bounded = (*Tier)(nil)

// Unbounded implements tiers.Bounded.
func (t *Tier) Unbounded() tiers.Streamer { return unbounded{t} }

// unbounded is a tier whose requests wait for no turn.
type unbounded struct{ *Tier }

// Put implements tiers.Streamer.
func (u unbounded) Put(ctx context.Context, o tiers.Object, body func(off, n int64) io.ReadSeeker,
	done tiers.ChunkFunc) (tiers.Timing, error) {
	return u.put(ctx, o, body, done, nil)
}

// Get implements tiers.Streamer.
func (u unbounded) Get(ctx context.Context, o tiers.Object, bufs []tiers.Buffer,
	sink func(p []byte, off int64) error, done tiers.ChunkFunc) (tiers.Timing, error) {
	return u.get(ctx, o, bufs, sink, done, nil)
}
