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

// withPatience runs a step that calls the source. After patience it returns the result of known
// instead, which needs book alone. The step ends when the source answers, perhaps never. In virtual
// time it waits without a limit.
func (d *dispatcher) withPatience(step, known func() account) (a account, unanswered bool) {
	if d.Simulated {
		d.lock()
		defer d.unlock()
		return step(), false
	}
	if d.unheard.Load() == 0 {
		done := make(chan account, 1)
		go func() {
			d.lock()
			defer d.unlock()
			done <- step()
		}()
		patience := time.NewTimer(d.patience)
		defer patience.Stop()
		select {
		case a := <-done:
			return a, false
		case <-patience.C:
		}
		d.unheard.Add(1) // later calls do not wait
		go func() {
			<-done
			d.unheard.Add(-1)
		}()
	}
	d.book.Lock()
	defer d.book.Unlock()
	return known(), true
}

// open opens the window in one step: start makes samples count and returns the moment from which.
// open returns the account up to that moment.
func (d *dispatcher) open(start func() time.Duration) account {
	at := time.Duration(0)
	begin := func() {
		if d.opened {
			return // by a step that did not wait for the source
		}
		at = start()
		d.opened = true
		d.pool.open(at)
	}
	a, _ := d.withPatience(func() account { begin(); return d.accountAt(at) },
		func() account { begin(); return d.counted(at) })
	return a
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
		a.classes[c].ClassLoad, d.known[c] = of, of
	}
	d.input = a.input
	return a
}

// counted is accountAt without calling the source: arrivals are those of the latest account, and at
// least all that were taken. Callers hold book.
func (d *dispatcher) counted(at time.Duration) account {
	a := d.countedAt(at)
	a.input = d.input
	for c := range a.classes {
		of, taken := d.known[c], a.classes[c].started
		of.Offered = max(of.Offered, taken)
		if of.Queued = of.Offered - taken; of.Queued == 0 {
			of.Oldest = workloads.Never
		}
		a.classes[c].ClassLoad = of
	}
	return a
}

// countedAt returns the dispatcher's own counts up to a moment. Callers hold book.
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

// close ends the handing out and returns the account at the window's end. unanswered: the source
// did not answer, so its offers are not exactly known.
func (d *dispatcher) close(end time.Duration) (a account, unanswered bool) {
	over := func() {
		d.closed = true
		d.cond.Broadcast()
	}
	return d.withPatience(func() account { over(); return d.accountAt(end) },
		func() account { over(); return d.counted(end) })
}

// account returns everything up to the given moment of the clock.
func (d *dispatcher) account(at time.Duration) account {
	a, _ := d.withPatience(func() account { return d.accountAt(at) },
		func() account { return d.counted(at) })
	return a
}
