package s3test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// memoryListener makes connections from in-memory pipes (net.Pipe). Their goroutines block on channels only, so
// testing/synctest can detect when all goroutines of a test are blocked. Refused and reset connections return
// the kernel's errors ECONNREFUSED and ECONNRESET.
type memoryListener struct {
	address memoryAddress
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func listenInMemory(address string) *memoryListener {
	return &memoryListener{address: memoryAddress(address), conns: make(chan net.Conn),
		closed: make(chan struct{})}
}

func (l *memoryListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	var reset atomic.Bool
	select {
	case l.conns <- &memoryConn{Conn: server, reset: &reset, remote: "client"}:
		return &memoryConn{Conn: client, reset: &reset, remote: l.address}, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: l.address,
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memoryAddress string

func (memoryAddress) Network() string  { return "tcp" }
func (a memoryAddress) String() string { return string(a) }

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.address }

// memoryConn is one end of a pipe that can be reset.
type memoryConn struct {
	net.Conn
	reset  *atomic.Bool // whether Close resets the connection; both ends share it
	remote memoryAddress
}

// SetLinger makes the next Close reset the connection, as SetLinger(0) of net.TCPConn does. The argument is
// ignored.
func (c *memoryConn) SetLinger(int) error {
	c.reset.Store(true)
	return nil
}

func (c *memoryConn) RemoteAddr() net.Addr { return c.remote }

func (c *memoryConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.fail("read", err)
}

func (c *memoryConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.fail("write", err)
}

// fail turns the error of a pipe into the error of a TCP socket. After a reset reads and writes fail with
// ECONNRESET, and so does a write to a closed connection.
func (c *memoryConn) fail(op string, err error) error {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) &&
		(c.reset.Load() || op == "write" && errors.Is(err, io.ErrClosedPipe)) {
		return &net.OpError{Op: op, Net: "tcp", Addr: c.remote,
			Err: os.NewSyscallError(op, syscall.ECONNRESET)}
	}
	return err
}
