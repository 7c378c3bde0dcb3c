package requests

import (
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/workloads"
)

// account has the counts of all offered requests at one moment. In each class, offered = completed +
// failed + in flight + queued.
type account struct {
	at       time.Duration // load time
	classes  [workloads.NumClasses]classCounts
	spent    spent
	workers  int           // number of workers
	input    *result.Input // nil unless the source reads a file
	computed time.Duration // busy time of the simulated GPU, for prompts
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
		spent: d.pool.spent, computed: d.gpu.Busy(counted), windowed: d.windowed, digest: d.digest}
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
