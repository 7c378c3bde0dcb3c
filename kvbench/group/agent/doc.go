// Package agent starts ranks on this host as children of the process that coordinates them, and is
// how such a child finds out that it is one.
//
// A child is this very binary with the same arguments and environment, and one variable more, which
// says what it is to do and which of its descriptors leads to the coordinator: one end of a pair of
// sockets that nobody else can reach. It takes the variable out of its environment at once. When
// the coordinator ends, however that comes about, the kernel closes the socket, and the child ends.
//
// Take is for the beginning of main; Start and Process for any goroutine.
package agent
