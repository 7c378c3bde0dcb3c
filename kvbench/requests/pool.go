package requests

import "time"

// pool is the workers, guarded by the dispatcher's lock. Idle time is a share of its time: with an
// autoscaler the number of workers changes within a window, so workers × window would be wrong.
type pool struct {
	limit int // workers with a lower number go on
	alive map[int]struct{}
	now   [numDoings]int // workers by their current activity

	opened time.Duration // the window
	since  time.Duration // the sums include the time until then
	spent  spent
}

// spent is time summed over workers since the window opened.
type spent struct {
	worked time.Duration // all of it
	doing  [numDoings]time.Duration
	// In the dispatcher, without waiting there: for its lock, taking and ending requests.
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

// open drops the sums from before the window.
func (p *pool) open(at time.Duration) {
	p.since, p.opened, p.spent = at, at, spent{}
}

// begin counts a worker's activity outside operations from now on.
func (p *pool) begin(what doing, now time.Duration) {
	p.pass(now)
	p.now[what]++
}

// end ends the activity.
func (p *pool) end(what doing, now time.Duration) {
	p.pass(now)
	p.now[what]--
}

// pass adds the time since the last call to the sums, for all workers and for each activity by the
// number of workers that are in it.
func (p *pool) pass(now time.Duration) {
	took := max(0, now-p.since)
	p.spent.worked += time.Duration(len(p.alive)) * took
	for i, n := range p.now {
		p.spent.doing[i] += time.Duration(n) * took
	}
	p.since = max(p.since, now)
}
