package checkpoint

import (
	"context"
	"errors"
	"sync"

	"kvbench/tiers"
)

// send writes an object to a store that pulls the bytes part by part: a part is one chunk. A part waits
// until its chunk is generated, and is sent from the chunk's buffer. After a failed attempt it is sent
// from there again. The buffer is free when the store has acknowledged the part. If send fails, the line
// is unusable, as after a failed write.
func (l *line) send(ctx context.Context, o tiers.Object, to tiers.Tier) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.o, l.to = o, nil
	l.next.Store(0)
	chunks := l.p.chunks(o.Size)
	s := &sending{line: l, ctx: ctx, got: make([]*slot, chunks), sent: make([]bool, chunks)}
	s.come = sync.NewCond(&s.mu)
	l.filled = s.filled
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.come.Broadcast()
	})()
	for _, b := range l.slots[:min(int64(len(l.slots)), chunks)] {
		l.give(b)
	}
	// Put requests parts in order, the next one as soon as an earlier one is acknowledged. Chunks get
	// buffers in the same order. So the first unacknowledged part always has a buffer, and Put cannot
	// deadlock. Producers finish chunks in any order: a part finds its chunk by its number.
	err := to.Put(ctx, &tiers.Call{Observe: s.done}, []tiers.Object{o}, s)
	cancel(err)
	s.end()
	return err
}

// sending is one object in flight.
type sending struct {
	line *line
	ctx  context.Context

	mu   sync.Mutex
	come *sync.Cond // wakes reads when a chunk has come, or ctx has ended
	got  []*slot    // by number, from its generation until its acknowledgement
	sent []bool     // by number: the store has read from the chunk at least once

	parts int // acknowledged parts; needs no lock, because calls of done do not overlap
}

// filled takes a chunk from a producer.
func (s *sending) filled(b *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got[b.off/s.line.p.chunk] = b
	s.come.Broadcast()
}

// errAcknowledged is the error of a Fill by an abandoned attempt after the store has acknowledged
// another attempt. The buffer may have other bytes by then.
var errAcknowledged = errors.New("the part has been acknowledged")

// Fill implements tiers.Source. It waits for the part's chunk and copies bytes from it. The lock keeps
// the chunk's buffer from being freed meanwhile.
func (s *sending) Fill(_ tiers.Object, off int64, p []byte) error {
	l := s.line
	chunk, at := off/l.p.chunk, off%l.p.chunk
	from := l.p.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := s.got[chunk] == nil && !s.sent[chunk]
	for s.got[chunk] == nil && !s.sent[chunk] && s.ctx.Err() == nil {
		s.come.Wait()
	}
	now := l.p.clock.Now()
	if waited {
		l.p.times.writerWait.Add(int64(now - from))
	}
	// An abandoned attempt may call Fill after the store has acknowledged another attempt, or after Put
	// has failed.
	b := s.got[chunk]
	switch {
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case b == nil:
		return errAcknowledged
	case !s.sent[chunk]:
		s.sent[chunk] = true
		l.enter(now)
	}
	copy(p, b.buf.B[at:])
	return nil
}

// done frees the buffer of an acknowledged part.
func (s *sending) done(c tiers.Chunk) {
	l := s.line
	switch {
	case c.Flush:
		l.complete(false)
	case !c.Piece: // a piece is progress of a part in flight, or its reversal after a failure
		s.mu.Lock()
		i := c.Off / l.p.chunk
		b := s.got[i]
		s.got[i] = nil
		s.mu.Unlock()
		// After the last of several parts the store completes the object. It reports the times of
		// this step only when the step has ended. That is too late for clocks that several lines
		// share, so the time of the step begins here.
		if s.parts++; s.parts == len(s.got) && s.parts > 1 {
			l.complete(true)
		}
		l.exit(l.p.clock.Now())
		l.p.times.chunks.Add(1)
		l.give(b)
	}
	l.done(c)
}

// end ends the busy time of parts that were not acknowledged. Their buffers are free: ctx has ended, so
// Fill copies no more bytes from them.
func (s *sending) end() {
	s.line.complete(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.got {
		if b != nil && s.sent[i] {
			s.line.exit(s.line.p.clock.Now())
		}
	}
}
