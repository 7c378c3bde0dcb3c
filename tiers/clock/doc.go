// Package clock is time and everything that waits for it, in two kinds that one
// and the same program runs on: wall time with goroutines, and virtual time with
// coroutines, which jumps from event to event.
//
//	clock.go    Clock, Event, Cond: what callers use; Wall, of the standard library; Busy
//	virtual.go  Virtual: one thread, reproducible to the byte; its events in their order
//
// # Rules
//
// Whoever may run in virtual time waits through its Clock alone: not on a channel, a
// sync.Cond, a time.Timer or a WaitGroup. A sync.Mutex is fine as long as nobody waits
// for time, an Event or a Cond while holding it. A Wall may be used by any goroutine. A
// Virtual belongs to the goroutine that drives it and to what it began with Go: of all
// these exactly one runs at any moment.
package clock
