// Package agent starts ranks as processes of the one that coordinates them, and is how such a
// process finds out that it is one.
//
// On this host it is a child: this very binary with the same arguments and environment, and one
// variable more, which says what it is to do and which of its descriptors leads to the coordinator:
// one end of a pair of sockets that nobody else can reach. When the coordinator ends, however that
// comes about, the kernel closes the socket, and the child ends.
//
// On another host it is the same binary at the other end of a shell such as ssh, whose standard
// input and output are the connection: no port is opened, and no host has to find a way back. The
// first that goes over it is the binary itself, where it is not there yet, then one line with
// orders, arguments and environment (see setup), then messages. When the shell ends, so does the
// connection, and with it the rank.
//
// Take is for the beginning of main, the rest for any goroutine.
package agent
