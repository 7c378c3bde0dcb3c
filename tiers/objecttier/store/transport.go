package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// wire is the connections of a client, with the kernel's counters of closed connections.
type wire struct {
	cfg       *Config
	transport *http.Transport

	mu      sync.Mutex
	open    map[*conn]bool
	closed  Network         // sum of closed connections
	servers map[string]bool // values of the header Server
}

// newWire makes one transport for all endpoints, with a pool of connections per host. It uses HTTP/1.1,
// because with HTTP/2 all requests share one connection. It uses no proxy and no compression, because
// these would be measured, too.
func newWire(cfg *Config) *wire {
	w := &wire{cfg: cfg, open: map[*conn]bool{}, servers: map[string]bool{}}
	w.transport = &http.Transport{
		DialContext:         w.dial,
		TLSHandshakeTimeout: cfg.ConnectTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs,
			InsecureSkipVerify: cfg.SkipVerify}, //nolint:gosec // the user asked for it
		DisableCompression:  true,
		MaxIdleConnsPerHost: cfg.Connections,
		MaxConnsPerHost:     cfg.Connections,
		IdleConnTimeout:     time.Minute,
		Protocols:           new(http.Protocols),
	}
	w.transport.Protocols.SetHTTP1(true) // explicit, so that an https endpoint cannot choose HTTP/2
	return w
}

// RoundTrip implements http.RoundTripper for the library.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	a := r.Context().Value(attemptKey{}).(*attempt)
	answer, err := w.transport.RoundTrip(r)
	if a.failure = err; err != nil {
		return nil, err
	}
	a.first = w.cfg.Clock.Now()
	a.status, a.header = answer.StatusCode, answer.Header
	a.html = strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html")
	a.moved(0)
	answer.Body = pieces{answer.Body, a}
	if name := answer.Header.Get("Server"); name != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.servers) < 8 { // a load balancer may name each of its servers
			w.servers[name] = true
		}
	}
	return answer, nil
}

// pieces is the body of an answer. Each piece of it restarts the time limit, also of an answer without an
// object: a store sends white space while it completes an upload.
type pieces struct {
	io.ReadCloser
	a *attempt
}

// Read implements io.Reader.
func (p pieces) Read(b []byte) (n int, err error) {
	if n, err = p.ReadCloser.Read(b); n > 0 {
		p.a.moved(0)
	}
	return n, err
}

// dial connects and reports the time of TCP only. TLS is a part of the first request.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
	w.open[c] = true
	return c, nil
}

// conn is a connection that stores the kernel's counters when it is closed.
type conn struct {
	net.Conn
	w    *wire
	once sync.Once
}

// Close reads the counters first, because the kernel drops them with the connection.
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

// Bodies are generated in a buffer of 32 KiB, which fits into a first-level cache, and written from it.
// With 64 KiB a PUT of 8 MiB took 1.2 times the processor time of a bare loop, with 32 KiB 1.06 times.
var sendBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// ReadFrom sends a body. net/http calls it.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	buf := sendBuffers.Get().(*[]byte)
	defer sendBuffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, *buf)
}

// Network sums the counters of all connections so far. It makes a system call for each open connection,
// so call it only at the start and end of a window.
func (c *Client) Network() Network {
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.closed
	for open := range w.open {
		sum.add(networkOf(open.Conn))
	}
	return sum
}

// Servers returns the values of the header Server in the answers.
func (c *Client) Servers() []string {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	return slices.Sorted(maps.Keys(c.wire.servers))
}

// Close closes all connections without a request.
func (c *Client) Close() { c.wire.transport.CloseIdleConnections() }

// Network is the kernel's counters of connections: bytes received and acknowledged, including those of
// the protocol. They are the cross-check for a store, like a block device's counters for files.
type Network struct {
	Known    bool // the kernel reports them, for TCP
	Received int64
	Acked    int64
	Resent   int64         // segments
	MinRTT   time.Duration // the shortest round trip on any connection
}

func (n *Network) add(o Network) {
	if !o.Known {
		return
	}
	n.Known = true
	n.Received += o.Received
	n.Acked += o.Acked
	n.Resent += o.Resent
	n.MinRTT = min(cmp.Or(n.MinRTT, o.MinRTT), cmp.Or(o.MinRTT, n.MinRTT))
}

// Since subtracts an earlier reading of the same client. MinRTT stays the minimum of all time.
func (n Network) Since(before Network) Network {
	n.Received -= before.Received
	n.Acked -= before.Acked
	n.Resent -= before.Resent
	return n
}
