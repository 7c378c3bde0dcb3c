package store

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// networkOf reads the kernel's counters of a connection.
func networkOf(c net.Conn) (n Network) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return n
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return n
	}
	_ = raw.Control(func(fd uintptr) { // after an error the counters stay unknown
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		n = Network{Known: true, Received: int64(info.Bytes_received),
			Acked: int64(info.Bytes_acked), Resent: int64(info.Total_retrans),
			MinRTT: time.Duration(info.Min_rtt) * time.Microsecond}
	})
	return n
}
