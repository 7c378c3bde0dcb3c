package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// kind is what a message is about.
type kind string

// What a rank sends, in the order of a run.
const (
	kindHello  kind = "hello"  // Hello
	kindEnter  kind = "enter"  // Trial, Terms: it enters a trial and proposes terms
	kindReady  kind = "ready"  // Trial: it is ready for the next phase
	kindPong   kind = "pong"   // Trial, At, Clock: the answer to a ping
	kindOpened kind = "opened" // Trial, At: how long after the start of the phase its window opened
	kindResult kind = "result" // Trial, Doc: its result, sent before it removes its files
	kindDone   kind = "done"   // Trial, Text: it has cleaned up; the text is its error
	kindLeave  kind = "leave"  // its last message; Text: why it ends, if early
)

// What the leader sends.
const (
	kindWelcome  kind = "welcome"  // the rank is taken
	kindRefusal  kind = "refusal"  // its last message; Text: why the rank is not taken
	kindGathered kind = "gathered" // Gathering: all ranks are connected
	kindAgreed   kind = "agreed"   // Trial, Terms: this rank's terms of the trial; or Text: an error
	kindPing     kind = "ping"     // Trial, At: the leader's clock
	kindBegin    kind = "begin"    // Trial, At: when the phase begins, by the rank's clock; or Text: an error
	kindOutcome  kind = "outcome"  // Trial, Text: why the trial failed, "" if it did not
	kindStop     kind = "stop"     // Text: the run ends, why
)

// kindHeartbeat is sent by both sides once a second. In a rank's heartbeat, Doc is the rank's text for the
// live line.
const kindHeartbeat kind = "beat"

// message is a message of any kind. A field that is not listed at its kind is absent.
type message struct {
	Kind      kind       `json:"kind"`
	Trial     int        `json:"trial,omitempty"` // number in the run, from 1
	Text      string     `json:"text,omitempty"`
	At        int64      `json:"at,omitempty"`    // ns since 1970, or ns
	Clock     int64      `json:"clock,omitempty"` // the rank's clock when it got the ping, ns since 1970
	Hello     *Hello     `json:"hello,omitempty"`
	Gathering *Gathering `json:"gathering,omitempty"`
	Terms     *Terms     `json:"terms,omitempty"`
	Doc       []byte     `json:"doc,omitempty"`
}

// Both sides send a heartbeat once a second. A side that sends nothing for Silence is lost. After
// Silence a reader reads once more, for patience: if its own process was stopped or got no CPU, the
// timer has expired although data has arrived.
const (
	heartbeatInterval = time.Second
	Silence           = 4 * time.Second
	patience          = 500 * time.Millisecond
)

// errSilent is the error of a read from a side that sends nothing.
var errSilent = fmt.Errorf("it has not answered for %v", Silence)

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

// link is a connection that carries JSON messages. Its reader closes the connection, so the side that gets
// the last message does: a side that closed after its last message could reset the connection before the
// other side has read the message.
type link struct {
	conn    net.Conn
	decoder *json.Decoder
	left    int // bytes that the next message may still take
	queue   chan *message
	over    chan struct{} // closed by the user of read when it has returned
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn, queue: make(chan *message, 64), over: make(chan struct{})}
	l.decoder = json.NewDecoder(l)
	return l
}

// send queues a message, so that no sender waits for the network. The queue is full only if the other side
// reads nothing, and is lost.
func (l *link) send(m *message) {
	select {
	case l.queue <- m:
	default:
	}
}

// write sends the queued messages, and a heartbeat each second. It ends after the last message of this side,
// with the reader, or when a write fails. After a failed write there may still be messages to read.
func (l *link) write(heartbeat func() *message) {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		var m *message
		select {
		case m = <-l.queue:
		case <-tick.C:
			m = heartbeat()
		case <-l.over:
			return
		}
		if l.put(m) != nil || m.Kind == kindLeave || m.Kind == kindRefusal {
			return
		}
	}
}

// put writes a message in pieces of 64 KiB. Each piece has the timeout Silence, the message has none.
func (l *link) put(m *message) error {
	text, err := json.Marshal(m)
	if err == nil && len(text) > maxMessage {
		err = fmt.Errorf("a %s takes %d bytes, a message at most %d", m.Kind, len(text), maxMessage)
	}
	for len(text) > 0 && err == nil {
		_ = l.conn.SetWriteDeadline(time.Now().Add(Silence))
		var n int
		n, err = l.conn.Write(text[:min(len(text), 64<<10)])
		text = text[n:]
	}
	return err
}

// get reads a message of at most most bytes.
func (l *link) get(most int) (*message, error) {
	l.left = most
	m := &message{}
	return m, l.decoder.Decode(m)
}

// read passes messages to handle until the connection ends, and closes the connection. It returns
// io.EOF, errSilent or another error.
func (l *link) read(handle func(*message)) error {
	defer l.conn.Close()
	for {
		m, err := l.get(maxMessage)
		if err != nil {
			return err
		}
		handle(m)
	}
}

// Read implements io.Reader for the decoder. Each Read has the timeout Silence.
func (l *link) Read(p []byte) (n int, err error) {
	if l.left <= 0 {
		return 0, errors.New("the message is too long")
	}
	p = p[:min(len(p), l.left)]
	for _, wait := range []time.Duration{Silence, patience} {
		_ = l.conn.SetReadDeadline(time.Now().Add(wait))
		n, err = l.conn.Read(p)
		l.left -= n
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return 0, errSilent
}
