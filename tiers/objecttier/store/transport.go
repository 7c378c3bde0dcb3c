package store

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// wire is the connections of a client, open ones and the counters of those that are closed.
type wire struct {
	cfg       *Config
	transport *http.Transport

	mu     sync.Mutex
	open   map[*conn]bool
	closed Network // of connections that are closed
	dials  int64
}

// newWire makes one transport for all endpoints: its pools are per host. HTTP/1.1, because what
// would be measured with HTTP/2 is one connection that all requests share. No proxy and no
// compression: they would be measured, too.
func newWire(cfg *Config) *wire {
	w := &wire{cfg: cfg, open: map[*conn]bool{}}
	w.transport = &http.Transport{
		DialContext:         w.dial,
		TLSHandshakeTimeout: cfg.ConnectTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs,
			InsecureSkipVerify: cfg.SkipVerify}, //nolint:gosec // the user asked for it
		DisableCompression: true,
		// More than are under way at once: none is closed to make room for another one.
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: cfg.Connections,
		MaxConnsPerHost:     cfg.Connections,
		IdleConnTimeout:     time.Minute,
		Protocols:           new(http.Protocols),
	}
	w.transport.Protocols.SetHTTP1(true) // said, so that an endpoint by https does not choose
	return w
}

// dial makes a connection and notes how long that took: with many short requests a store that
// closes connections costs one of these each. The limit of time holds for a name that has to be
// looked up, too.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	// The time is that of TCP alone: TLS comes later, on the first request of the connection.
	dial := w.cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: w.cfg.ConnectTimeout}).DialContext
	}
	begun := w.cfg.Clock.Now()
	inner, err := dial(ctx, network, address)
	w.cfg.Observer.Connected(address, w.cfg.Clock.Now()-begun, err)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, w: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dials++
	w.open[c] = true
	return c, nil
}

// conn is a connection that tells what the kernel says of it when it is closed.
type conn struct {
	net.Conn
	w    *wire
	once sync.Once
}

// Close reads the counters first: of a connection that is closed nobody knows them any more.
func (c *conn) Close() error {
	c.once.Do(func() {
		n := networkOf(c.Conn)
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		c.w.closed.add(n)
		delete(c.w.open, c)
	})
	return c.Conn.Close()
}

// sendBuffer is what a body is made in, and written from: 32 KiB, which a processor's first cache
// holds. Of 64 KiB a PUT of 8 MiB took 1.2 times the processor time of a bare loop, of 32 KiB 1.06
// times; above that memory grows with the number of connections, too.
const sendBuffer = 32 << 10

// A body of up to wholeBuffer is made and sent at once: of 64 KiB each system call is a tenth of
// what a PUT costs the client, and wakes the store.
const wholeBuffer = 2 * sendBuffer

var (
	sendBuffers  = sync.Pool{New: func() any { b := make([]byte, sendBuffer); return &b }}
	wholeBuffers = sync.Pool{New: func() any { b := make([]byte, wholeBuffer); return &b }}
)

// ReadFrom is how the transport hands over a body: it is made in the buffer that it is sent from.
func (c *conn) ReadFrom(r io.Reader) (n int64, err error) {
	pool := &sendBuffers
	if rest, ok := r.(*io.LimitedReader); ok && rest.N > sendBuffer && rest.N <= wholeBuffer {
		pool = &wholeBuffers
	}
	kept := pool.Get().(*[]byte)
	defer pool.Put(kept)
	buf := *kept
	for {
		got, err := r.Read(buf)
		if got > 0 {
			sent, err := c.Conn.Write(buf[:got])
			n += int64(sent)
			if err != nil {
				return n, err
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return n, nil
		default:
			return n, err
		}
	}
}

// Network sums up all connections so far. Those that are open are asked one by one: a system call
// each, which is for the edges of a window and not for each second of it.
func (c *Client) Network() Network {
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.closed
	sum.Dials = w.dials
	for open := range w.open {
		sum.add(networkOf(open.Conn))
	}
	return sum
}

// Close ends all connections that no request has.
func (c *Client) Close() { c.wire.transport.CloseIdleConnections() }

// Network is what the kernel says of connections: bytes that arrived and that were acknowledged,
// with the protocol's own, whatever this program believes to have moved. It is the witness of a
// store, as a block device's counters are that of a file.
type Network struct {
	Known    bool // by a kernel that says it, of connections that are TCP
	Received int64
	Acked    int64
	// Resent are segments that had to be sent again.
	Resent int64
	// MinRTT is the shortest round trip that the kernel measured on any connection.
	MinRTT time.Duration
	Dials  int64
}

func (n *Network) add(o Network) {
	if !o.Known {
		return
	}
	n.Known = true
	n.Received += o.Received
	n.Acked += o.Acked
	n.Resent += o.Resent
	if n.MinRTT == 0 || o.MinRTT > 0 && o.MinRTT < n.MinRTT {
		n.MinRTT = o.MinRTT
	}
}

// Since is what came after an earlier reading of the same client. Round trips are not counted, and
// stay those of its whole life.
func (n Network) Since(before Network) Network {
	n.Received -= before.Received
	n.Acked -= before.Acked
	n.Resent -= before.Resent
	n.Dials -= before.Dials
	return n
}

// ReadRatio is the bytes received per byte that was read, which the protocol's own make a little
// more than 1. Less means that bytes came from elsewhere than the network. 0 without bytes.
func (n Network) ReadRatio(read int64) float64 {
	if read <= 0 || !n.Known {
		return 0
	}
	return float64(n.Received) / float64(read)
}
