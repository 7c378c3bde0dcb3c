package requests

import "time"

// pool counts the workers and their time. The dispatcher's lock guards it. It sums up the time of all
// workers, because with an autoscaler the number of workers changes within a window.
type pool struct {
	limit int // workers with this id or above end
	alive map[int]struct{}
	now   [numDoings]int // workers by their current activity

	opened time.Duration // start of the window
	since  time.Duration // spent includes the time until since
	spent  spent
}

// spent has times since the start of the window, summed over the workers.
type spent struct {
	worked time.Duration // total
	doing  [numDoings]time.Duration
	// dispatch is the time to take and end requests, with the wait for the dispatcher's lock. It
	// excludes the activities waiting and deciding.
	dispatch time.Duration
}

// doing is a worker's activity outside operations.
type doing uint8

const (
	waiting  doing = iota // for a request
	deciding              // for entries that other requests hold
	thinking              // sleeping as long as a GPU would compute
	numDoings
)

// open resets the sums at the start of the window.
func (p *pool) open(at time.Duration) {
	p.since, p.opened, p.spent = at, at, spent{}
}

// add changes the number of workers in an activity.
func (p *pool) add(workers int, what doing, now time.Duration) {
	p.pass(now)
	p.now[what] += workers
}

// pass adds the time since the last call to the sums: once for each worker, and for each activity once
// for each worker that is in it.
func (p *pool) pass(now time.Duration) {
	took := max(0, now-p.since)
	p.spent.worked += time.Duration(len(p.alive)) * took
	for i, n := range p.now {
		p.spent.doing[i] += time.Duration(n) * took
	}
	p.since = max(p.since, now)
}
