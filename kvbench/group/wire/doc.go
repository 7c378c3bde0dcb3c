// Package wire is the protocol between the clients of one run: messages, each in a frame of its
// own, and the hello with which each client begins.
//
//	wire.go    Message, and the frames: 4 bytes of length, most significant first, then JSON
//	hello.go   Hello: a rank, its host and filesystems, and why it is refused
//
// A frame is at most MaxFrame long, and that of a rank that was not welcomed at most
// MaxHello: a length is believed only as far as bytes follow it. Nothing received is executed, or
// used as a path: files are named by rank numbers. Messages carry no credentials.
//
// Functions are safe for any goroutine; one reader and one writer at a time for each connection.
package wire
