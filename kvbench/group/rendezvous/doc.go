// Package rendezvous is where the ranks of a job meet whom somebody else has started: rank 0
// listens at a Place, the others dial it.
//
//	rendezvous.go  Place: an address, a socket of this host, a file in a directory that all share
//	file.go        the file, which holds the addresses at which rank 0 listens
//	peer_*.go      whose process is at the other end of a socket of this host
//
// A place is no secret, and no proof of anything: who comes says in its hello to which job it
// belongs, and who dials finds out by the answer. Sockets of a host are for processes of one user
// alone. Addresses are for a closed network: nothing is encrypted, and no credentials are said.
//
// Places are values. Listen is for one process of a job, Dial for any goroutine of the others.
package rendezvous
