package transfer

import (
	"context"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Next says where the next request of a Pass goes: it sets Off and N of the IO, puts what is to be
// written into its buffer, and returns what takes it; nil: there is to be no more.
type Next func(io *tiers.IO) tiers.Submitter

// Sequence goes through the bytes of s from io.Off up to size, io.N after the other, the last ones
// fewer. prepare is called with the buffer before each request.
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

// Pass is plain I/O: one request after the other in the one buffer of io, without content or
// verification. count is called after each, with a Chunk that knows all but its Op: when it says
// that there is to be no more, Pass ends in order. The end of ctx takes effect at the next request;
// for one that is under way Pass waits for at most tiers.Grace. Its buffer belongs to the tier
// until back is called: once, when the last request has come back, which may be long after Pass has
// returned.
//
// Like the streams of an operation it goes on where a request comes back: who is woken for each
// request leaves the device idle meanwhile, and what this measures is the device.
func Pass(ctx context.Context, c clock.Clock, io *tiers.IO, next Next,
	count func(tiers.Chunk) (more bool), back func()) error {
	if ctx.Err() != nil {
		back()
		return context.Cause(ctx)
	}
	// Who decides whether a request that comes back is still waited for: it itself, or who gives up
	// at that very moment, but only one of them.
	const (
		away = iota // the tier has the request
		here        // it has come back
		left        // the tier has it, and nobody waits any more
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
		default: // it has just come back, and may be followed by one that saw no end of ctx
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
