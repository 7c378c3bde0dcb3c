package group

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// Listen waits for the other ranks at HOST:PORT. With an address of this machine it listens only
// there. A name means all interfaces: on the host itself it may be the loopback interface (Debian's
// /etc/hosts has 127.0.1.1), and in a cluster an address that another machine holds for it.
func Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) == nil {
		host = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("waiting for the other ranks at %s: %w (rank 0 has to run on that "+
			"host; -rendezvous HOST:PORT names another address)", address, err)
	}
	return l, nil
}

// maxPending is how many connections without a hello are open at a time: each takes a descriptor
// for up to helloTimeout.
const maxPending = 256

// Serve accepts connections until the listener is closed.
func (l *Leader) Serve(listener net.Listener) {
	var open atomic.Int64
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many descriptors are open, or the other side is gone
			time.Sleep(retryLeast)
			continue
		case open.Load() >= maxPending+int64(l.Hello.Ranks):
			_ = conn.Close() // a rank tries again
			continue
		}
		open.Add(1)
		go func() {
			defer open.Add(-1)
			l.Accept(conn)
		}()
	}
}

// Times of a rank that connects to rank 0: for one attempt, and between two of them.
const (
	dialTime   = 4 * time.Second
	retryLeast = 50 * time.Millisecond
	retryMost  = time.Second
)

// Dial connects to the coordinator at HOST:PORT and joins its run. It tries again until ctx ends,
// or, for a coordinator that was there before this rank, only once.
func Dial(ctx context.Context, address string, once bool, hello Hello, cfg MemberConfig) (
	*Member, error) {
	began := time.Now()
	var last error // that is not the end of ctx
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		dialer := net.Dialer{Timeout: dialTime}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			var m *Member
			m, err = Join(ctx, conn, hello, cfg)
			if refused := (Refused{}); err == nil || errors.As(err, &refused) {
				return m, err
			}
			// The port may belong to another job, or to another service.
			err = fmt.Errorf("the process at that address is not rank 0 of this job (%s): %w",
				hello.Job, err)
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !once {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
			}
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause,
			context.DeadlineExceeded) {
			return nil, cause
		}
		return nil, fmt.Errorf("rank %d found no rank 0 at %s within %v: %w", hello.Rank, address,
			time.Since(began).Round(time.Second/10), last)
	}
}
