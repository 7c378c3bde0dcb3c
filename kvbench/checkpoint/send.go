package checkpoint

import (
	"context"
	"errors"

	"kvbench/tiers"
)

// send writes an object to a store that pulls the bytes part by part: a part is one chunk. The line is
// the source of the bytes. A part waits until its chunk is generated, and is sent from the chunk's
// buffer, after a failed attempt again. The buffer is free when the store has acknowledged the part. If
// send fails, the line is unusable, as after a failed write.
func (l *line) send(ctx context.Context, o tiers.Object, to tiers.Tier) error {
	ctx, cancel := context.WithCancelCause(ctx)
	_, stop := l.begin(ctx, o)
	defer stop()
	// Put requests parts in order, the next one as soon as an earlier one is acknowledged. Chunks get
	// buffers in the same order. So the first unacknowledged part always has a buffer, and Put cannot
	// deadlock. Producers finish chunks in any order: a part finds its chunk by its number.
	err := to.Put(ctx, &tiers.Call{Observe: l.acknowledged}, []tiers.Object{o}, l)
	cancel(err) // from now on Fill copies no bytes
	l.complete(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.full {
		if s != nil && l.begun[i] { // sent, and not acknowledged
			l.exit(l.p.clock.Now())
		}
	}
	return err
}

// errAcknowledged is the error of a Fill by an abandoned attempt after the store has acknowledged
// another attempt. The buffer may have other bytes by then.
var errAcknowledged = errors.New("the part has been acknowledged")

// Fill implements tiers.Source. It waits for the part's chunk and copies bytes from it. The lock keeps
// the chunk's buffer from being freed meanwhile.
func (l *line) Fill(o tiers.Object, off int64, p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.ID() != l.o.ID() {
		return errAcknowledged
	}
	chunk := off / l.p.chunk
	s, err := l.take(chunk)
	switch {
	case err != nil: // also of an attempt that Put has abandoned
		return err
	case s == nil:
		return errAcknowledged
	case !l.begun[chunk]:
		l.begun[chunk] = true
		l.enter(l.p.clock.Now())
	}
	copy(p, s.buf.B[off%l.p.chunk:])
	return nil
}

// acknowledged frees the buffer of a part. Its calls do not overlap.
func (l *line) acknowledged(c tiers.Chunk) {
	switch {
	case c.Flush:
		l.complete(false)
	case !c.Piece: // a piece is progress of a part in flight, or its reversal after a failure
		l.mu.Lock()
		s := l.full[c.Off/l.p.chunk]
		l.full[s.chunk] = nil
		l.mu.Unlock()
		// After the last of several parts the store completes the object. It reports the times of
		// this step only when the step has ended. That is too late for clocks that several lines
		// share, so the time of the step begins here.
		if l.parts++; l.parts == int64(len(l.full)) && l.parts > 1 {
			l.complete(true)
		}
		l.exit(l.p.clock.Now())
		l.p.chunks.Add(1)
		l.give(s)
	}
	l.done(c)
}
