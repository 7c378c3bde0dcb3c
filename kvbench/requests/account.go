package requests

import (
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/compute"
)

// account has the counts of all offered requests at one moment. In each class, offered = completed +
// failed + in flight + queued.
type account struct {
	at       time.Duration // load time
	classes  [workloads.NumClasses]classCounts
	spent    spent
	workers  int           // number of workers
	most     int           // their largest number so far
	input    *result.Input // nil unless the source reads a file
	computed compute.Work  // of the simulated GPU, for prompts
	windowed
	digest workloads.Digest
}

// open opens the window: start starts the recording of samples and returns the moment. open returns the
// account at that moment. No request starts or ends meanwhile.
func (d *dispatcher) open(start func() time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := start()
	d.opened = true
	d.pool.open(at)
	return d.accountAt(at)
}

// accountAt returns the account at a moment of the clock. Callers hold mu. So the source's offers and
// the dispatcher's counts are of the same moment.
func (d *dispatcher) accountAt(at time.Duration) account {
	counted := min(at, d.windowEnd())
	d.pool.pass(counted)
	a := account{at: at - d.origin, classes: d.classes, workers: len(d.pool.alive),
		most: d.pool.most, spent: d.pool.spent, computed: d.gpu.Work(counted), windowed: d.windowed, digest: d.digest}
	for j := range d.inflight {
		n := &a.classes[j.req.Class]
		n.inFlight++
		n.ages = append(n.ages, a.at-j.req.Arrival)
	}
	d.ask(d.now(), func() {
		for c, load := range d.src.Account(a.at) {
			a.classes[c].ClassLoad = load
		}
		if r, ok := d.src.(interface{ Report() workloads.TraceReport }); ok {
			a.input = record.Input(r.Report())
		}
	})
	return a
}

// close ends the dispatch of requests and returns the account at the end of the window.
func (d *dispatcher) close(end time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.cond.Broadcast()
	return d.accountAt(end)
}

// account returns the account at a moment of the clock.
func (d *dispatcher) account(at time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accountAt(at)
}

// pool counts the workers and their time. The dispatcher's lock guards it. It sums up the time of all
// workers, because with an autoscaler the number of workers changes within a window.
type pool struct {
	limit int // workers with this id or above end
	most  int // largest number of workers so far
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
	thinking              // sleeping as long as a GPU would compute
	// deciding and a tiers.Kind: for entries in that tier that other requests hold
	deciding
	numDoings = deciding + doing(tiers.NumKinds)
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
