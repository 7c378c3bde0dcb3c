package requests

import (
	"context"
	"fmt"
	"time"
)

// pool is the workers. Guarded by the dispatcher's lock. Its time is what idle time is a share of:
// with an autoscaler the number of workers changes within a window, so workers × window would not
// do.
type pool struct {
	limit int // workers with a lower number go on
	alive map[int]struct{}
	now   [numDoings]int // how many workers do what just now

	opened time.Duration // the window
	since  time.Duration // up to which the sums are known
	spent  spent
}

// spent is time summed over workers since the window opened.
type spent struct {
	worked time.Duration // all of it
	doing  [numDoings]time.Duration
	// In the dispatcher, without waiting there: for its lock, taking and ending requests.
	dispatch time.Duration
}

// doing is what a worker does that is no operation.
type doing uint8

const (
	waiting  doing = iota // for a request
	deciding              // for others to let go of what its decision needs
	thinking              // sleeping as long as a GPU would compute
	numDoings
)

// open forgets what was before the window.
func (p *pool) open(at time.Duration) {
	p.since, p.opened, p.spent = at, at, spent{}
}

// begin notes that a worker begins to do something else than an operation, end that it has ended.
func (p *pool) begin(what doing, now time.Duration) {
	p.pass(now)
	p.now[what]++
}

func (p *pool) end(what doing, now time.Duration) {
	p.pass(now)
	p.now[what]--
}

// pass lets time pass.
func (p *pool) pass(now time.Duration) {
	took := max(0, now-p.since)
	p.spent.worked += time.Duration(len(p.alive)) * took
	for i, n := range p.now {
		p.spent.doing[i] += time.Duration(n) * took
	}
	p.since = max(p.since, now)
}

// staff lets workers 0 … n-1 work and returns those that have to be started. Before, it changes
// what has to change in the same step, nil for nothing.
//
// Users change together with workers: with more users than workers for a moment, the backlog
// of that moment would be counted as the storage's.
func (d *dispatcher) staff(n int, change func(now time.Duration)) (start []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if change != nil {
		change(d.now())
	}
	p := &d.pool
	p.pass(d.measured())
	p.limit = n
	for id := range n {
		if _, works := p.alive[id]; !works {
			p.alive[id] = struct{}{}
			start = append(start, id)
		}
	}
	d.cond.Broadcast() // some have to go, others may find something
	return start
}

// startWorkers makes the number of workers n, in one step with a change. Those that are too many
// end by themselves, when they come for their next request.
func (l *Load) startWorkers(ctx context.Context, n int, change func(now time.Duration)) {
	for _, id := range l.dispatch.staff(n, change) {
		w := &worker{id: id, load: l}
		l.env.Go(fmt.Sprint("worker ", id), func() { w.loop(ctx) })
	}
}
