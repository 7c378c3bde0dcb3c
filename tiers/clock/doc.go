// Package clock has time and waits in two kinds: wall time with goroutines, and virtual time, which
// jumps from event to event, with coroutines. The same program runs on both.
//
//	clock.go    Clock, Event, Cond: the interface; Wall: wall time; Busy
//	virtual.go  Virtual: discrete events on one thread, reproducible to the byte
//
// # Rules
//
// Code that may run in virtual time only waits through its Clock: not on a channel, a sync.Cond, a
// time.Timer or a WaitGroup. It may lock a sync.Mutex, but must not wait for time, an Event or a Cond
// while it holds one. Any goroutine may use a Wall. A Virtual belongs to the goroutine that drives it
// and to the coroutines begun with Go: exactly one of these runs at any moment.
package clock
