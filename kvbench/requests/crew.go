package requests

import (
	"time"

	"kvbench/workloads"
)

// crew is who works. Guarded by the dispatcher's lock.
type crew struct {
	limit int // workers with a lower number go on; 0 = all do
	alive map[int]struct{}
	since time.Duration
	time  time.Duration // Σ over workers, since reset
}

// join lets workers 0 … n-1 work and returns those that have to be started.
func (c *crew) join(now time.Duration, n int) (start []int) {
	c.account(now)
	c.limit = n
	if c.alive == nil {
		c.alive = make(map[int]struct{})
	}
	for id := range n {
		if _, works := c.alive[id]; !works {
			c.alive[id] = struct{}{}
			start = append(start, id)
		}
	}
	return start
}

// wants says whether a worker goes on.
func (c *crew) wants(id int) bool { return c.limit == 0 || id < c.limit }

func (c *crew) leave(now time.Duration, id int) {
	c.account(now)
	delete(c.alive, id)
}

func (c *crew) account(now time.Duration) {
	c.time += time.Duration(len(c.alive)) * max(0, now-c.since)
	c.since = max(c.since, now)
}

func (c *crew) reset(now time.Duration) { c.time, c.since = 0, now }

// resize changes the users of a source and the workers, and returns the workers
// that have to be started.
func (d *dispatcher) resize(src workloads.Scalable, users, workers int) (start []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	src.SetUsers(users, d.now())
	start = d.crew.join(d.clock.Now(), workers)
	d.cond.Broadcast() // some have to go, others may find something
	return start
}

// hire lets the first workers in.
func (d *dispatcher) hire(workers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crew.join(d.clock.Now(), workers)
}

// working is how many workers there are.
func (d *dispatcher) working() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.crew.alive)
}

// workedUntil is the time of all workers since the window opened, up to t.
func (d *dispatcher) workedUntil(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crew.account(t)
	return d.crew.time
}
