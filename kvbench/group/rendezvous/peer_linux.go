package rendezvous

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// socketName is in no directory: the kernel forgets an abstract socket with its last descriptor.
func socketName(name string) string { return "@" + name }

// ours tells whether a process of this user is at the other end: an abstract socket has no
// permissions, and its name is known.
func ours(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	ctl := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	switch {
	case ctl != nil:
		return ctl
	case err != nil:
		return err
	case int(peer.Uid) != os.Geteuid():
		return errForeign
	}
	return nil
}
