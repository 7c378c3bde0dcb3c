// Package testnet is what tests of clients need below their protocol.
//
//	network.go      Network: connections without sockets, for tests in virtual time; Reset
//	certificate.go  certificates of an authority of their own
//
// Everything is safe for concurrent use. A Network has nothing to close: its listeners and
// connections end like others.
package testnet
