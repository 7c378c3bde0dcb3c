package group

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// Listen opens the port of address (HOST:PORT) for the other ranks. If HOST is an IP address, it
// listens only at that address. If HOST is a name, it listens on all interfaces, because the name
// may resolve to the loopback interface on the host itself (Debian's /etc/hosts has 127.0.1.1), or
// to an address of another machine that forwards to this host.
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

// maxPending is how many connections without a hello may be open at a time. Each takes a file
// descriptor for up to helloTimeout.
const maxPending = 256

// Serve accepts connections until the listener is closed.
func (l *Leader) Serve(listener net.Listener) {
	var open atomic.Int64
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open descriptors, or the other side is gone
			time.Sleep(retryLeast)
			continue
		case open.Load() >= maxPending+int64(l.Hello.Ranks):
			_ = conn.Close() // a rank connects again
			continue
		}
		open.Add(1)
		go func() {
			defer open.Add(-1)
			l.Accept(conn)
		}()
	}
}

// dialTime is the timeout of one attempt to connect to rank 0. The pause between attempts grows
// from retryLeast to retryMost.
const (
	dialTime   = 4 * time.Second
	retryLeast = 50 * time.Millisecond
	retryMost  = time.Second
)

// Dial connects to the coordinator at address (HOST:PORT) and joins its run. It tries again until
// ctx ends. With once it tries once, because the coordinator started before this rank.
func Dial(ctx context.Context, address string, once bool, hello Hello, cfg MemberConfig) (
	*Member, error) {
	began := time.Now()
	var last error // the last error that is not the end of ctx
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
