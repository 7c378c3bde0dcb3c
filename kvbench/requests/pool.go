package requests

import (
	"time"

	"kvbench/workloads"
)

// pool is the workers. Guarded by the dispatcher's lock. Its time is what idle time is a share of:
// with an autoscaler the number of workers changes within a window, so workers × window would not
// do.
type pool struct {
	limit int // workers with a lower number go on; 0 = all do
	alive map[int]struct{}
	since time.Duration
	time  time.Duration // Σ over workers, since reset
}

// join lets workers 0 … n-1 work and returns those that have to be started.
func (p *pool) join(now time.Duration, n int) (start []int) {
	p.account(now)
	p.limit = n
	if p.alive == nil {
		p.alive = make(map[int]struct{})
	}
	for id := range n {
		if _, works := p.alive[id]; !works {
			p.alive[id] = struct{}{}
			start = append(start, id)
		}
	}
	return start
}

// wants says whether a worker goes on.
func (p *pool) wants(id int) bool { return p.limit == 0 || id < p.limit }

func (p *pool) leave(now time.Duration, id int) {
	p.account(now)
	delete(p.alive, id)
}

func (p *pool) account(now time.Duration) {
	p.time += time.Duration(len(p.alive)) * max(0, now-p.since)
	p.since = max(p.since, now)
}

func (p *pool) reset(now time.Duration) { p.time, p.since = 0, now }

// resize changes the users of a source and the workers, and returns the workers
// that have to be started.
//
// Both change in one step under the lock: with more users than workers for a moment, the backlog
// of that moment would be counted as the storage's.
func (d *dispatcher) resize(src workloads.Scalable, users, workers int) (start []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	src.SetUsers(users, d.now())
	start = d.pool.join(d.clock.Now(), workers)
	d.cond.Broadcast() // some have to go, others may find something
	return start
}

// admit lets the first workers in.
func (d *dispatcher) admit(workers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool.join(d.clock.Now(), workers)
}

// working is how many workers there are.
func (d *dispatcher) working() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.pool.alive)
}

// workedUntil is the time of all workers since the window opened, up to t.
func (d *dispatcher) workedUntil(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool.account(t)
	return d.pool.time
}
