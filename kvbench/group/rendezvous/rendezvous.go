package rendezvous

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Port is that of rank 0 where nobody names another.
const Port = "7717"

// Kind is how ranks meet.
type Kind string

// The ways.
const (
	TCP    Kind = "tcp"    // at HOST:PORT
	Socket Kind = "socket" // of this host
	File   Kind = "file"   // tcp, at an address that rank 0 writes into a file
)

// Place is where they do.
type Place struct {
	Kind    Kind
	Address string // HOST:PORT, the socket's name, the file's path
}

// String is how people read it.
func (p Place) String() string {
	if p.Kind == Socket {
		return "socket " + p.Address
	}
	return p.Address
}

// OnHost is the socket of a job all of whose ranks are on this host.
func OnHost(job string) Place {
	name := fmt.Sprintf("kvbench-%d-%s", os.Geteuid(), plain(job))
	return Place{Socket, socketName(name)}
}

// In is the file of a job in a directory that all of its ranks see.
func In(dir, job string) Place {
	return Place{File, filepath.Join(dir, strings.TrimSuffix(".kvbench-rendezvous-"+plain(job),
		"-"))}
}

// longest is what a name keeps of a job: that of a socket has 107 bytes in all.
const longest = 48

// plain makes a job's name one of a file. Different jobs keep different names.
func plain(job string) string {
	text := strings.Map(func(r rune) rune {
		if r < 128 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, job)
	if text == job && len(text) <= longest {
		return text
	}
	sum := sha256.Sum256([]byte(job))
	return text[:min(len(text), longest)] + "-" + hex.EncodeToString(sum[:4])
}

// dialTime is for one attempt at one address.
const dialTime = 4 * time.Second

// Listen waits for others there. Closing the listener leaves nothing behind.
//
// At an address of this machine it listens there, and only there. A host's name may mean its
// loopback interface on the host itself (Debian's /etc/hosts has 127.0.1.1), and in a cluster an
// address that somebody else holds for it: a name is taken for all interfaces.
func (p Place) Listen() (net.Listener, error) {
	switch p.Kind {
	case Socket:
		// One of the same name has another rank 0 of this job, which lives.
		l, err := net.Listen("unix", p.Address)
		if err != nil {
			return nil, fmt.Errorf("waiting for the other ranks at %v: %w", p, err)
		}
		return own{l}, nil
	case File:
		return p.listenAndWrite()
	}
	host, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) == nil {
		host = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("waiting for the other ranks at %v: %w (rank 0 has to run on that "+
			"host; -rendezvous HOST:PORT names another port)", p, err)
	}
	return l, nil
}

// Dial tries once to reach rank 0 there. Attempts are numbered from 0: where there are several
// addresses, each begins with another one, because behind one of them somebody else may answer.
func (p Place) Dial(ctx context.Context, attempt int) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	var d net.Dialer
	switch p.Kind {
	case Socket:
		// Who has the name first may be anybody, and would be told this rank's parameters.
		conn, err := d.DialContext(ctx, "unix", p.Address)
		if err != nil {
			return nil, err
		}
		if err := ours(conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	case File:
		return p.dialWritten(ctx, attempt)
	}
	return d.DialContext(ctx, "tcp", p.Address)
}

// own is a listener that takes in processes of this user alone.
type own struct{ net.Listener }

func (l own) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if ours(conn) == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// errForeign is what is wrong with a process of somebody else.
var errForeign = errors.New("it belongs to another user")
