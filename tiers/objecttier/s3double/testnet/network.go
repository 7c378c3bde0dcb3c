package testnet

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// Network is a network in memory, for tests in a bubble of testing/synctest, in which time does not
// pass as long as somebody waits for a real socket. Connections hold back nothing: a write ends
// when its bytes have been read. Errors are those of the kernel: refused where nobody listens,
// reset where the other side has been killed.
type Network struct {
	mu    sync.Mutex // held while nothing else is waited for
	ports map[string]*memoryListener
	dials atomic.Int64
}

// Listen waits for connections to an address, any text of the form host:port.
func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ports == nil {
		n.ports = map[string]*memoryListener{}
	}
	if n.ports[address] != nil {
		return nil, opError("listen", address, syscall.EADDRINUSE)
	}
	l := &memoryListener{network: n, address: memoryAddress(address),
		conns: make(chan net.Conn), closed: make(chan struct{})}
	n.ports[address] = l
	return l, nil
}

// DialContext is for http.Transport.
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.ports[address]
	n.mu.Unlock()
	if l == nil {
		return nil, opError("dial", address, syscall.ECONNREFUSED)
	}
	// A pipe waits on channels only, so a bubble knows when everybody does.
	here, there := net.Pipe()
	n.dials.Add(1)
	var reset atomic.Bool
	client := &memoryConn{Conn: here, reset: &reset, remote: l.address}
	server := &memoryConn{Conn: there, reset: &reset, remote: "client"}
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, opError("dial", address, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, opError("dial", address, ctx.Err())
	}
}

// Dials is how many connections have been asked for where somebody listened, for tests of those
// that are kept alive.
func (n *Network) Dials() int64 { return n.dials.Load() }

// opError is an error as package net makes them, so that errors.Is finds the kernel's number and
// its text reads as usual.
func opError(op, address string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		call := map[string]string{"dial": "connect", "listen": "bind"}[op]
		if call == "" {
			call = op
		}
		err = os.NewSyscallError(call, errno)
	}
	return &net.OpError{Op: op, Net: "tcp", Addr: memoryAddress(address), Err: err}
}

type memoryAddress string

func (memoryAddress) Network() string  { return "tcp" }
func (a memoryAddress) String() string { return string(a) }

// memoryListener hands over connections one by one: there is no backlog, a dial ends when it has
// been accepted.
type memoryListener struct {
	network *Network
	address memoryAddress
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", string(l.address), net.ErrClosed)
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.ports, string(l.address))
		close(l.closed)
	})
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.address }

// memoryConn is one end of a pipe that can be reset, as TCP can.
type memoryConn struct {
	net.Conn
	reset  *atomic.Bool // of both ends
	linger atomic.Bool  // closing resets
	remote memoryAddress
}

// Reset closes a connection of a Network or of the kernel, with TLS or without, so that the other
// side gets an RST whatever it is doing, and not the end of a stream.
func Reset(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}

// SetLinger is as that of net.TCPConn for 0: Close then resets the connection.
func (c *memoryConn) SetLinger(seconds int) error {
	c.linger.Store(seconds == 0)
	return nil
}

// Close ends both directions, as the close of a socket does.
func (c *memoryConn) Close() error {
	if c.linger.Load() {
		c.reset.Store(true)
	}
	return c.Conn.Close()
}

// RemoteAddr is of use in errors; the client's end has no port.
func (c *memoryConn) RemoteAddr() net.Addr { return c.remote }

func (c *memoryConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.error("read", err)
}

func (c *memoryConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.error("write", err)
}

// error makes of a pipe's error what a socket would say: EOF on reading what the other side has
// closed, a reset when it was killed or when one writes to it.
func (c *memoryConn) error(op string, err error) error {
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return err
	// Both ends know of a reset at once, as on a network without a way between.
	case c.reset.Load(), op == "write" && errors.Is(err, io.ErrClosedPipe):
		return opError(op, string(c.remote), syscall.ECONNRESET)
	}
	return err
}
