package users

import (
	"container/heap"
	"time"

	"kvbench/workloads"
)

// pending is a request in flight in a simulation.
type pending struct {
	at  time.Duration
	run func()
}

type agenda []pending

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(pending)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// simulate serves a source with workers under virtual time until stop says so or the source is
// exhausted.
func simulate(s workloads.Source, workers int, service func(*workloads.Request) time.Duration,
	stop func(now time.Duration, r *workloads.Request) bool) {
	var events agenda
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
			heap.Push(&events, pending{written, func() { s.Written(r) }})
			heap.Push(&events, pending{done, func() { s.Done(r, done); idle++ }})
		}
		if len(events) == 0 && wake == workloads.Never {
			return
		}
		if len(events) > 0 {
			wake = min(wake, events[0].at)
		}
		now = max(now, wake)
		for len(events) > 0 && events[0].at <= now {
			heap.Pop(&events).(pending).run()
		}
	}
}
