// Package gputier keeps entries in the memory of NVIDIA cards: the gpu tier of -gpu-backend cuda.
//
//	gputier.go     Tier, over one piece of memory per card; Cards: the cards of this machine
//	cuda_linux.go  the CUDA driver API, by dlopen: neither headers nor a toolkit of CUDA are needed to build
//	cuda_other.go  builds without cgo, and other systems: an error that says so
//
// A copy is a call that blocks its caller's thread, on a stream of that thread. So as many copies are in
// flight as the caller has requests in flight, and the link is full while other requests wait for the
// storage.
//
// Tests use a driver of their own, see tiertest.Cards.
package gputier
