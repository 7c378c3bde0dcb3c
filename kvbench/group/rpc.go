package group

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A rank calls methods of the coordinator over its connection. The connection carries packets as JSON: calls in
// one direction, and answers in any order in the other direction. Package net/rpc does the same, but it finds
// methods by reflection. The linker then keeps the exported methods of all packages: 10 MB of the binary, and
// 5 MB of resident memory.

// packet is a call if Method is set, else the answer to the call with this number.
type packet struct {
	Call   uint64          `json:"call"`
	Method string          `json:"method,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	Error  string          `json:"error,omitempty"` // of the method; "" for success
}

// method executes a call. in is the JSON of the argument, out is encoded as JSON.
type method func(in json.RawMessage) (out any, err error)

// handle makes a method from a function f, which writes the answer into its second argument.
func handle[In, Out any](f func(In, *Out) error) method {
	return func(text json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(text, &in); err != nil {
			return nil, err
		}
		out := new(Out)
		return out, f(in, out)
	}
}

// serve executes the calls of a connection concurrently until it ends, and closes it. find returns the method
// with a name, or nil.
func serve(conn io.ReadWriteCloser, find func(name string) method) {
	defer conn.Close()
	var mu sync.Mutex // of the encoder
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var p packet
		if in.Decode(&p) != nil {
			return
		}
		go func() {
			answer := packet{Call: p.Call}
			err := fmt.Errorf("there is no method %.40q", p.Method)
			if do := find(p.Method); do != nil {
				var v any
				if v, err = do(p.Body); err == nil {
					answer.Body, err = json.Marshal(v)
				}
			}
			if err != nil {
				answer.Error = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(answer) // the end of the connection ends the calling side, too
		}()
	}
}

// methodError is the error of a method of the other side.
type methodError string

func (e methodError) Error() string { return string(e) }

// call is a call in flight. err is set when done is closed.
type call struct {
	out  any
	done chan struct{}
	err  error
}

// caller calls methods of the other side of a connection. It is safe for concurrent use.
type caller struct {
	conn    io.ReadWriteCloser
	writing sync.Mutex // of out: a message may take long
	out     *json.Encoder

	mu    sync.Mutex
	last  uint64           // number of the last call
	calls map[uint64]*call // in flight
	ended error            // the error that ended the connection
}

// newCaller returns a caller that owns conn.
func newCaller(conn io.ReadWriteCloser) *caller {
	c := &caller{conn: conn, out: json.NewEncoder(conn), calls: map[uint64]*call{}}
	go c.receive()
	return c
}

// start calls a method and does not wait for its answer, which is decoded into out, if out is not nil.
func (c *caller) start(name string, in, out any) *call {
	k := &call{out: out, done: make(chan struct{})}
	body, err := json.Marshal(in)
	c.writing.Lock() // before the number, so that numbers are sent in order
	defer c.writing.Unlock()
	c.mu.Lock()
	if err = errors.Join(c.ended, err); err != nil {
		c.mu.Unlock()
		k.err = err
		close(k.done)
		return k
	}
	c.last++
	number := c.last
	c.calls[number] = k
	c.mu.Unlock()
	if err := c.out.Encode(packet{Call: number, Method: name, Body: body}); err != nil {
		c.end(number, nil, err)
	}
	return k
}

// end ends a call that is in flight. answer is nil if err is set.
func (c *caller) end(number uint64, answer json.RawMessage, err error) {
	c.mu.Lock()
	k := c.calls[number]
	delete(c.calls, number)
	c.mu.Unlock()
	if k == nil {
		return
	}
	if k.err = err; err == nil && k.out != nil {
		k.err = json.Unmarshal(answer, k.out)
	}
	close(k.done)
}

// receive takes the answers until a read fails, and then ends all calls in flight. It does not close the
// connection: the other side has its own timeout, and its own reason.
func (c *caller) receive() {
	in := json.NewDecoder(c.conn)
	for {
		var p packet
		if err := in.Decode(&p); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended = err
			for _, k := range c.calls {
				k.err = err
				close(k.done)
			}
			c.calls = nil
			return
		}
		var err error
		if p.Error != "" {
			err = methodError(p.Error)
		}
		c.end(p.Call, p.Body, err)
	}
}

// close ends the connection, and so all calls in flight.
func (c *caller) close() { _ = c.conn.Close() }

// Each rank sends a heartbeat once a second, and the coordinator answers it. The kernel closes the connection of a
// process that dies, so the other side notices the death at once. A silent side may continue later, for example
// after its process, its virtual machine or the network was stopped. The other side waits up to the timeout of the link.
const (
	heartbeatInterval = time.Second
	silenceLeast      = 4 * time.Second  // the least silence of a rank that is reported
	shortTimeout      = 10 * time.Second // before the hello, and after a stop: launchers kill a job that ends late
)

// errSilent is wrapped by the error of a read if the other side has sent nothing for the timeout.
var errSilent = errors.New("has not answered")

// maxHello is how many bytes a connection may send until its rank is admitted.
const maxHello = 1 << 20

// link is a connection whose reads and writes end with an error if the other side is silent for the timeout.
type link struct {
	net.Conn
	timeout atomic.Int64        // in ns; 0: shortTimeout
	wrote   atomic.Bool         // a full piece (64 KiB) was written in this interval
	left    atomic.Int64        // bytes that the other side may still send
	silence func(time.Duration) // called when a silence of at least silenceLeast has ended; may be nil
	ended   func(error)         // called with the error that ends reading
}

// silenceMost returns the longest silence of the other side before the connection counts as ended.
func (l *link) silenceMost() time.Duration {
	return cmp.Or(time.Duration(l.timeout.Load()), shortTimeout)
}

// Read implements io.Reader. It adds up the intervals in which nothing came, at most heartbeatInterval for each
// read. So a long stop of its own process counts as one interval, and not as a silence of the other side.
func (l *link) Read(p []byte) (n int, err error) {
	quiet := time.Duration(0)
	for {
		began := time.Now()
		_ = l.SetReadDeadline(began.Add(heartbeatInterval))
		if n, err = l.Conn.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
			quiet += min(time.Since(began), heartbeatInterval)
			break
		}
		if quiet += heartbeatInterval; l.wrote.Swap(false) {
			quiet = 0 // the other side answers only after a long message
		}
		if quiet >= l.silenceMost() {
			err = fmt.Errorf("%w for %v", errSilent, quiet)
			break
		}
	}
	if err == nil && quiet >= silenceLeast && l.silence != nil {
		l.silence(quiet)
	}
	if l.left.Add(-int64(n)) < 0 {
		err = errors.New("the message is too long")
	}
	if err != nil {
		l.ended(err)
	}
	return n, err
}

// Write writes in pieces. Each piece has the timeout; the whole message has none.
func (l *link) Write(p []byte) (n int, err error) {
	const most = 64 << 10
	for n < len(p) && err == nil {
		piece := p[n:min(n+most, len(p))]
		_ = l.SetWriteDeadline(time.Now().Add(l.silenceMost()))
		var written int
		written, err = l.Conn.Write(piece)
		n += written
		if written == most {
			l.wrote.Store(true)
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
