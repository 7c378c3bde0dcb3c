package s3test

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
)

// memoryListener makes connections from in-memory pipes (net.Pipe). Their goroutines block on channels only, so
// testing/synctest can detect when all goroutines of a test are blocked. A closed listener refuses connections
// with the kernel's error ECONNREFUSED. A pipe cannot be reset: its other end reads an EOF.
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
	select {
	case l.conns <- server:
		return client, nil
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
