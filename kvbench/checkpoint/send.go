package checkpoint

import (
	"context"
	"errors"

	"kvbench/tiers"
)

// send writes an object to a store that takes the bytes part by part: a part is one chunk. The line (the
// pipeline of an accelerator) is the source of the bytes. A part waits until its chunk is generated. Each
// attempt sends the part from the chunk's buffer. The buffer is free when the store has acknowledged the
// part. If send fails, the line is unusable, as after a failed write.
func (l *line) send(ctx context.Context, o tiers.Object, to tiers.Tier) error {
	ctx, cancel := context.WithCancelCause(ctx)
	_, stop := l.begin(ctx, o)
	defer stop()
	// Put sends the parts in order. It begins the next part as soon as an earlier part is acknowledged.
	// Chunks get buffers in the same order. So the first unacknowledged part always has a buffer, and Put
	// cannot deadlock. Producers finish chunks in any order: a part finds its chunk by its number.
	err := to.Put(ctx, &tiers.Call{Observe: l.acknowledged}, []tiers.Object{o}, l)
	cancel(err) // from now on Fill copies no bytes
	l.endCompletion()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.full {
		if s != nil && l.begun[i] { // sent, and not acknowledged
			l.exit(l.p.clock.Now())
		}
	}
	return err
}

// errAcknowledged is the error of Fill in an abandoned attempt, if the store has acknowledged the part in
// another attempt. The buffer may have other bytes by then.
var errAcknowledged = errors.New("the part has been acknowledged")

// Fill implements tiers.Source. It waits for the part's chunk and copies bytes from its buffer. While Fill
// has the lock, nothing can free the buffer.
func (l *line) Fill(o tiers.Object, off int64, p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.ID() != l.o.ID() {
		return errAcknowledged
	}
	chunk := off / l.p.chunk
	s, err := l.take(chunk)
	switch {
	case err != nil: // also in an attempt that Put has abandoned
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
		l.endCompletion()
	// A Piece reports bytes of a part in flight. After a failed upload it subtracts them.
	case !c.Piece:
		l.mu.Lock()
		s := l.full[c.Off/l.p.chunk]
		l.full[s.chunk] = nil
		l.mu.Unlock()
		// After the last of several parts the store completes the object. The tier reports this step
		// only after the step has ended. But all lines share the timer of the busy time, so the timer
		// must start here.
		if l.parts++; l.parts == int64(len(l.full)) && l.parts > 1 {
			l.beginCompletion()
		}
		l.exit(l.p.clock.Now())
		l.p.chunks.Add(1)
		l.give(s)
	}
	l.done(c)
}
