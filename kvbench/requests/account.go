package requests

import (
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/workloads"
)

// account is the state of all offered requests at a moment.
//
// The invariant of every result: of each class, offered = completed + failed + in flight + queued.
type account struct {
	at       time.Duration // of the load's time
	classes  [workloads.NumClasses]classCounts
	spent    spent
	workers  int           // their number
	input    *result.Input // of a recorded source
	computed time.Duration // the server's time of computing prompts
	windowed
	digest workloads.Digest
}

// open opens the window in one step: start makes samples count and returns the moment from which.
// open returns the account up to that moment.
func (d *dispatcher) open(start func() time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := start()
	d.opened = true
	d.pool.open(at)
	return d.accountAt(at)
}

// accountAt returns everything up to a moment of the clock. Callers hold mu.
//
// The source is called last, and under the same lock: its offers and the started requests belong to
// one moment.
func (d *dispatcher) accountAt(at time.Duration) account {
	a := d.countedAt(at)
	var offered []workloads.ClassLoad
	d.ask(d.now(), func() {
		offered = d.src.Account(a.at)
		if r, ok := d.src.(interface{ Report() workloads.TraceReport }); ok {
			a.input = record.Input(r.Report())
		}
	})
	for c, of := range offered {
		a.classes[c].ClassLoad = of
	}
	return a
}

// countedAt returns the dispatcher's own counts up to a moment. Callers hold mu.
func (d *dispatcher) countedAt(at time.Duration) account {
	d.pool.pass(min(at, d.windowEnd()))
	a := account{at: at - d.origin, classes: d.classes, workers: len(d.pool.alive),
		spent: d.pool.spent, computed: d.gpu.Busy(min(at, d.windowEnd())), windowed: d.windowed,
		digest: d.digest}
	for j := range d.inflight {
		n := &a.classes[j.req.Class]
		n.inFlight++
		n.ages = append(n.ages, a.at-j.req.Arrival)
	}
	return a
}

// close ends the handing out and returns the account at the window's end.
func (d *dispatcher) close(end time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.cond.Broadcast()
	return d.accountAt(end)
}

// account returns everything up to the given moment of the clock.
func (d *dispatcher) account(at time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accountAt(at)
}
