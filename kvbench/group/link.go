package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Both sides send a heartbeat once a second. A side that sends nothing for Silence is lost. After
// Silence a reader reads once more, for patience: if its own process was stopped or got no CPU, the
// timer has expired although data has arrived.
const (
	heartbeatInterval = time.Second
	Silence           = 4 * time.Second
	patience          = 500 * time.Millisecond
)

// errSilent is the error of a read from a side that sends nothing.
var errSilent = errors.New("silence")

// Maximum sizes in bytes of a message and of the first message, when the other side is still
// unknown. The result of a day with its histograms has some MiB.
const (
	maxMessage = 64 << 20
	maxHello   = 1 << 20
)

// state is a mutex and a broadcast to all that wait for a change of the guarded fields.
type state struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
}

func newState() state { return state{changed: make(chan struct{})} }

// notify wakes all waiters. It is called with mu.
func (s *state) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until done returns true. It calls done with mu, at first and after each change. It
// returns the cause of ctx if ctx ends first.
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

// link is a connection with a queue of messages to send, so that no sender waits for the network. Its
// reader closes the connection. Its writer shuts down only the sending direction, because messages of
// the other side may still be in flight.
type link struct {
	conn    net.Conn
	in      *reader
	decoder *json.Decoder // of in

	state
	queue []*message
	ended bool          // nothing more is queued
	gone  chan struct{} // closed when the writer has ended
}

func newLink(conn net.Conn) *link {
	in := &reader{conn: conn}
	return &link{conn: conn, in: in, decoder: json.NewDecoder(in), state: newState(),
		gone: make(chan struct{})}
}

func (l *link) send(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.queue = append(l.queue, m)
		l.notify()
	}
}

// end makes the writer shut down the sending direction after the queue is sent.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.notify()
}

// write sends the queued messages, and a heartbeat each second, until end is called or a write
// fails.
func (l *link) write(heartbeat func() *message) {
	defer close(l.gone)
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		l.mu.Lock()
		queue, ended, changed := l.queue, l.ended, l.changed
		l.queue = nil
		l.mu.Unlock()
		for _, m := range queue {
			if err := l.put(m); err != nil {
				// After a failed write there may still be messages to read, so the connection
				// stays open. After a timeout it is closed: the other side has read nothing
				// for Silence, and is lost.
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
		case <-changed:
		case <-tick.C:
			l.send(heartbeat())
		}
	}
}

// put writes a message in pieces of 64 KiB. Each piece has the timeout Silence, the message has
// none.
func (l *link) put(m *message) error {
	const most = 64 << 10
	text, err := json.Marshal(m)
	if err == nil && len(text) > maxMessage {
		err = fmt.Errorf("a %s takes %d bytes, a message at most %d", m.Kind, len(text), maxMessage)
	}
	for len(text) > 0 && err == nil {
		piece := text[:min(len(text), most)]
		text = text[len(piece):]
		_ = l.conn.SetWriteDeadline(time.Now().Add(Silence))
		_, err = l.conn.Write(piece)
	}
	return err
}

// get reads a message of at most most bytes. It returns io.EOF if the connection ends between two
// messages.
func (l *link) get(most int) (*message, error) {
	l.in.left = most
	m := &message{}
	if err := l.decoder.Decode(m); err != nil {
		return nil, err
	}
	return m, nil
}

// read passes messages to handle until the connection ends, and closes the connection. It returns
// io.EOF, errSilent or another network error.
func (l *link) read(handle func(*message)) error {
	defer l.conn.Close()
	for {
		m, err := l.get(maxMessage)
		if errors.Is(err, syscall.ECONNRESET) { // the process ended with unread data
			err = io.EOF
		}
		if err != nil {
			return err
		}
		handle(m)
	}
}

// reader reads from a connection. Each Read has the timeout Silence. It reads at most left bytes.
type reader struct {
	conn net.Conn
	left int
}

func (r *reader) Read(p []byte) (n int, err error) {
	if r.left <= 0 {
		return 0, errors.New("the message is too long")
	}
	p = p[:min(len(p), r.left)]
	for _, wait := range []time.Duration{Silence, patience} {
		_ = r.conn.SetReadDeadline(time.Now().Add(wait))
		n, err = r.conn.Read(p)
		r.left -= n
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return 0, errSilent
}
