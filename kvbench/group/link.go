package group

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Each rank sends a heartbeat once a second, and the coordinator answers it. A side that sends nothing for
// Silence is lost. After Silence a reader reads once more, for the time patience: if its own process was
// stopped or got no CPU, the timer has expired although data has arrived.
const (
	heartbeatInterval = time.Second
	Silence           = 4 * time.Second
	patience          = 500 * time.Millisecond
)

// errSilent is the error of a read from a side that sends nothing.
var errSilent = fmt.Errorf("it has not answered for %v", Silence)

// link is a connection whose reads and writes end with an error if the other side is silent.
type link struct {
	net.Conn
	ended func(error) // called with the error that ends reading
}

// Read implements io.Reader.
func (l *link) Read(p []byte) (n int, err error) {
	for _, wait := range []time.Duration{Silence, patience} {
		_ = l.SetReadDeadline(time.Now().Add(wait))
		if n, err = l.Conn.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		err = errSilent
	}
	if err != nil {
		l.ended(err)
	}
	return n, err
}

// Write writes in pieces. Each piece has the timeout Silence; the whole message has no timeout. The other
// side answers only after a long message, so each written piece extends the time in which it has to answer.
func (l *link) Write(p []byte) (n int, err error) {
	const most = 64 << 10
	for n < len(p) && err == nil {
		piece := p[n:min(n+most, len(p))]
		_ = l.SetWriteDeadline(time.Now().Add(Silence))
		var written int
		written, err = l.Conn.Write(piece)
		if n += written; written == most {
			_ = l.SetReadDeadline(time.Now().Add(Silence))
		}
	}
	return n, err
}

// state is a mutex, and a broadcast to all goroutines that wait for a change of the guarded fields.
type state struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
}

// notify wakes all waiters. It is called with mu.
func (s *state) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until done returns true, and locks mu. It calls done with mu, at first and after each change.
// It returns the cause of ctx if ctx ends first.
func (s *state) await(ctx context.Context, done func() bool) error {
	s.mu.Lock()
	for !done() {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
			s.mu.Lock()
		case <-ctx.Done():
			s.mu.Lock()
			return context.Cause(ctx)
		}
	}
	return nil
}
