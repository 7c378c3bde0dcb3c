package transfer

import (
	"context"
	"sync/atomic"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Next prepares the next request of a Pass. It sets Off and N of the IO, fills the buffer of a write,
// and returns the submitter. nil ends the Pass.
type Next func(io *tiers.IO) tiers.Submitter

// Sequence returns a Next that requests the bytes from io.Off to size in order, io.N bytes per request.
// The last request may be shorter. Next calls prepare with the buffer before each request.
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
// verification. Pass calls count after each request, with a Chunk without Op. It ends when next returns
// nil, when a request fails, or when count returns false. When ctx ends, Pass submits no further request
// and waits at most tiers.Grace for the request in flight.
//
// The tier owns the buffer until Pass calls release. Pass calls it once, when the last request has
// completed. That may be long after Pass has returned.
//
// Pass submits each request on the goroutine that completes the previous request, because a wake-up per
// request would leave the device idle.
func Pass(ctx context.Context, c clock.Clock, io *tiers.IO, next Next,
	count func(tiers.Chunk) (more bool), release func()) error {
	if ctx.Err() != nil {
		release()
		return context.Cause(ctx)
	}
	// state is the state of the request. Both the completion of the request and the end of the wait try
	// to change it from inFlight: exactly one of them succeeds.
	const (
		inFlight  = iota
		completed // the request has completed
		abandoned // the request is in flight, and Pass no longer waits for it
	)
	var state atomic.Int32
	over := c.NewEvent()
	var failure error
	submitted := c.Now() // when the request was submitted
	tierPart := 0        // see tiers.PartOf
	submit := func() (more bool) {
		s := next(io)
		if s == nil {
			return false
		}
		tierPart = tiers.PartOf(s)
		io.Begun, io.Ended, io.Passed = 0, 0, 0
		state.Store(inFlight)
		s.Submit(io)
		return true
	}
	io.Done = func(io *tiers.IO) {
		if !state.CompareAndSwap(inFlight, completed) {
			release()
			return
		}
		if failure = io.Err; failure == nil {
			// Reading the clock takes longer than counting: the next request is submitted when this one has
			// ended, so that its wait includes the work between them.
			ended := io.Ended
			if ended == 0 {
				ended = c.Now()
			}
			done := chunk(0, io, submitted, ended)
			done.Bytes, done.Part = int64(io.N), tierPart
			submitted = ended
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
		release()
		return failure
	}
	var abandon func()
	abandon = func() {
		switch {
		case over.Fired():
		case state.CompareAndSwap(inFlight, abandoned):
			over.Fire()
		default: // the request has just completed, and the next one may have been submitted before ctx ended
			c.At(c.Now()+tiers.Grace, abandon)
		}
	}
	c.At(c.Now()+tiers.Grace, abandon)
	_ = over.Wait(context.WithoutCancel(ctx))
	if state.Load() == abandoned {
		return context.Cause(ctx)
	}
	release()
	return failure
}
