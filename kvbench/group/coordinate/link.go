package coordinate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"kvbench/kvbench/group/wire"
)

// Beats come once a second; who says nothing for Silence is lost. Patience is added once: a process
// that was itself stopped, or got no processor, finds its timers run out, and must not take what
// has arrived meanwhile for silence.
const (
	beat     = time.Second
	Silence  = 4 * time.Second
	patience = 500 * time.Millisecond
)

// errSilent is how the reading of a link ends whose other side says nothing.
var errSilent = errors.New("silence")

// link is a connection with a queue of what is to be said, so that nobody who has something to say
// waits for the network.
type link struct {
	conn net.Conn

	mu    sync.Mutex
	queue []*wire.Message
	ended bool          // say what is in the queue, then nothing more
	deaf  bool          // nobody reads any more
	left  bool          // the other side does not read any more: who reads closes
	wake  chan struct{} // something has changed
	gone  chan struct{} // closed when nothing is written any more
}

// newLink begins to write: what is sent, and what beats says each second.
func newLink(conn net.Conn, beats func() *wire.Message) *link {
	l := &link{conn: conn, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	go l.write(beats)
	return l
}

func (l *link) send(m *wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.queue = append(l.queue, m)
		l.stir()
	}
}

// end lets the connection end when everything is said.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.stir()
}

func (l *link) stir() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) write(beats func() *wire.Message) {
	defer close(l.gone)
	keep := false
	defer func() {
		if !keep {
			_ = l.conn.Close()
		}
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		// What is queued is written in order, and then a beat only when nothing else is to be said
		// for a second: any message tells that this side lives.
		l.mu.Lock()
		queue, ended := l.queue, l.ended
		l.queue = nil
		l.mu.Unlock()
		for _, m := range queue {
			if err := wire.Write(slow{l.conn}, m); err != nil {
				// What the other side has said before it went is still there to be read. One that
				// is there and takes nothing is given up.
				keep = !errors.Is(err, os.ErrDeadlineExceeded) && l.leave()
				return
			}
		}
		if len(queue) > 0 {
			continue
		}
		if ended {
			return
		}
		select {
		case <-l.wake:
		case <-tick.C:
			l.send(beats())
		}
	}
}

// leave leaves it to the reader to close the connection, if there still is one.
func (l *link) leave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
	return !l.deaf
}

// read hands on what comes, until the connection ends: io.EOF, or errSilent.
func (l *link) read(handle func(*wire.Message)) error {
	for {
		m, err := wire.Read(slow{l.conn}, wire.MaxFrame)
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.deaf = true; l.left {
				_ = l.conn.Close()
			}
			return err
		}
		handle(m)
	}
}

// slow lets a connection take as long as it likes, as long as it goes on.
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
