package coordinate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"kvbench/kvbench/group/wire"
)

// Both sides send a heartbeat once a second. A side that sends nothing for Silence is lost.
// Patience is added once: a process that was itself stopped, or got no processor, finds its timers
// expired, and must not take arrived data for silence.
const (
	heartbeatInterval = time.Second
	Silence           = 4 * time.Second
	patience          = 500 * time.Millisecond
)

// errSilent is the error of a read from a side that sends nothing.
var errSilent = errors.New("silence")

// state is a mutex, and a wakeup of all that wait for a change of what it guards.
type state struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
}

func newState() state { return state{changed: make(chan struct{})} }

// notify is called with mu.
func (s *state) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until done reports true. It calls done with mu, and after each change.
func (s *state) await(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// link is a connection with a queue of messages to send, so that no sender waits for the network.
// Its reader closes the connection; its writer only ends its own direction, because messages of the
// other side may still be on their way.
type link struct {
	conn net.Conn

	mu    sync.Mutex
	queue []*wire.Message
	ended bool          // nothing follows what is queued
	wake  chan struct{} // the queue, or ended, has changed
	gone  chan struct{} // closed when nothing is written any more
}

// newLink starts the writer: it sends the queue, and what heartbeat returns each second.
func newLink(conn net.Conn, heartbeat func() *wire.Message) *link {
	l := &link{conn: conn, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	go l.write(heartbeat)
	return l
}

func (l *link) send(m *wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.queue = append(l.queue, m)
		l.signal()
	}
}

// end ends this side's direction after the queue was sent.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.signal()
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) write(heartbeat func() *wire.Message) {
	defer close(l.gone)
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		l.mu.Lock()
		queue, ended := l.queue, l.ended
		l.queue = nil
		l.mu.Unlock()
		for _, m := range queue {
			if err := wire.Write(slow{l.conn}, m); err != nil {
				// After a failed write there may still be messages to read. A side that reads
				// nothing for Silence is lost.
				if errors.Is(err, os.ErrDeadlineExceeded) {
					_ = l.conn.Close()
				}
				return
			}
		}
		if len(queue) > 0 {
			continue
		}
		if ended {
			// A close with unread data resets a TCP connection, which drops what is not sent yet.
			if half, ok := l.conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			} else {
				_ = l.conn.Close()
			}
			return
		}
		select {
		case <-l.wake:
		case <-tick.C:
			l.send(heartbeat())
		}
	}
}

// read passes messages to handle until the connection ends, and closes it. The error is io.EOF or
// errSilent, or another one of the network.
func (l *link) read(handle func(*wire.Message)) error {
	defer l.conn.Close()
	for {
		m, err := wire.Read(slow{l.conn}, wire.MaxFrame)
		if errors.Is(err, syscall.ECONNRESET) { // the end of a process that had more to read
			err = io.EOF
		}
		if err != nil {
			return err
		}
		handle(m)
	}
}

// slow is a connection with a time limit for each piece of a message, but not for the whole.
type slow struct{ net.Conn }

func (c slow) Read(p []byte) (n int, err error) {
	for _, wait := range []time.Duration{Silence, patience} {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		n, err = c.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return 0, errSilent
}

func (c slow) Write(p []byte) (n int, err error) {
	const piece = 64 << 10
	for n < len(p) && err == nil {
		var m int
		_ = c.SetWriteDeadline(time.Now().Add(Silence))
		m, err = c.Conn.Write(p[n:min(len(p), n+piece)])
		n += m
	}
	if err != nil {
		return n, fmt.Errorf("after %d of %d bytes: %w", n, len(p), err)
	}
	return n, nil
}
