package users

import (
	"time"

	"kvbench/workloads"
)

// pending is a request in flight in a simulation.
type pending struct {
	at  time.Duration
	run func()
}

// Before orders by time.
func (a pending) Before(b pending) bool { return a.at < b.at }

// simulate runs a source with workers under virtual time until stop returns true or the source is
// exhausted.
func simulate(s workloads.Source, workers int, service func(*workloads.Request) time.Duration,
	stop func(now time.Duration, r *workloads.Request) bool) {
	var events Heap[pending]
	now, idle := time.Duration(0), workers
	for {
		wake := workloads.Never
		for idle > 0 {
			r, st, at := s.Take(now)
			if st == workloads.Exhausted && len(events) == 0 {
				return
			}
			if st != workloads.Ready {
				wake = at
				break
			}
			if stop(now, r) {
				return
			}
			idle--
			written := now + service(r)
			done := written + service(r)
			events.Push(pending{written, func() { s.Written(r) }})
			events.Push(pending{done, func() { s.Done(r, done); idle++ }})
		}
		if len(events) == 0 && wake == workloads.Never {
			return
		}
		if len(events) > 0 {
			wake = min(wake, events[0].at)
		}
		now = max(now, wake)
		for len(events) > 0 && events[0].at <= now {
			events.Pop().run()
		}
	}
}
