// Package wire is what the clients of one run say to each other: messages, each in a frame of its
// own, and the hello with which each of them begins.
//
//	wire.go    Message, and the frames: 4 bytes of length, most significant first, then JSON
//	hello.go   Hello: who somebody is, and why one that does not belong here is refused
//
// A frame is at most MaxFrame long, and one of a stranger, who has not been welcomed, at most
// MaxHello: a length is believed only as far as bytes follow it. Nothing received is executed, or
// used as a path: files are named by rank numbers. Messages carry no credentials.
//
// Functions are safe for any goroutine; one reader and one writer at a time for each connection.
package wire
