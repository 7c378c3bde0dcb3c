package transfer

import (
	"context"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Next prepares the next request of a Pass. It sets Off and N of the IO, fills the buffer of a write,
// and returns the submitter. nil ends the Pass.
type Next func(io *tiers.IO) tiers.Submitter

// Sequence requests the bytes from io.Off to size in order, io.N bytes per request; the last request
// may be shorter. It calls prepare with the buffer before each request.
func Sequence(s tiers.Submitter, io *tiers.IO, size int64, prepare func([]byte)) Next {
	off, full := io.Off, int64(io.N)
	return func(io *tiers.IO) tiers.Submitter {
		if off >= size {
			return nil
		}
		io.Off, io.N = off, int(min(full, size-off))
		off += full
		prepare(io.Buf.B)
		return s
	}
}

// Pass is plain I/O: one request after the other, in the buffer of io, without generated content or
// verification. It calls count after each request, with a Chunk without Op, and ends when count returns
// false. The end of ctx takes effect at the next request. Then Pass waits for the request in flight for
// at most tiers.Grace. The tier owns the buffer until Pass calls back: once, when the last request has
// completed, which may be long after Pass has returned.
//
// It submits the next request on the goroutine that completes the last one, because a wake-up per
// request would leave the device idle.
func Pass(ctx context.Context, c clock.Clock, io *tiers.IO, next Next,
	count func(tiers.Chunk) (more bool), back func()) error {
	if ctx.Err() != nil {
		back()
		return context.Cause(ctx)
	}
	// where is the state of the request. Its completion and the end of the wait both try to change it
	// from away: exactly one succeeds.
	const (
		away = iota // in flight
		here        // completed
		left        // in flight, and Pass no longer waits for it
	)
	var where atomic.Int32
	over := c.NewEvent()
	var failure error
	var asked time.Duration
	part := 0
	submit := func() (some bool) {
		s := next(io)
		if s == nil {
			return false
		}
		part = tiers.PartOf(s)
		io.Begun, io.Ended, io.Passed, asked = 0, 0, 0, c.Now()
		where.Store(away)
		s.Submit(io)
		return true
	}
	io.Done = func(io *tiers.IO) {
		if !where.CompareAndSwap(away, here) {
			back()
			return
		}
		if failure = io.Err; failure == nil {
			done := chunk(0, io, asked, c.Now())
			done.Bytes, done.Part = int64(io.N), part
			if count(done) {
				if ctx.Err() != nil {
					failure = context.Cause(ctx)
				} else if submit() {
					return
				}
			}
		}
		over.Fire()
	}
	if !submit() || over.Wait(ctx) == nil {
		back()
		return failure
	}
	var leave func()
	leave = func() {
		switch {
		case over.Fired():
		case where.CompareAndSwap(away, left):
			over.Fire()
		default: // it has just completed, and the next request may have been submitted before ctx ended
			c.At(c.Now()+tiers.Grace, leave)
		}
	}
	c.At(c.Now()+tiers.Grace, leave)
	_ = over.Wait(context.WithoutCancel(ctx))
	if where.Load() == left {
		return context.Cause(ctx)
	}
	back()
	return failure
}
