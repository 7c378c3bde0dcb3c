package requests

import (
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/workloads"
)

// account is what was offered and what became of it up to a moment.
//
// The invariant of every result: of each class, offered = completed + failed + in flight + queued.
type account struct {
	at       time.Duration // of the load's time
	classes  [workloads.NumClasses]classCounts
	spent    spent
	workers  int           // how many there are
	input    *result.Input // of a recorded source
	computed time.Duration // for how long the server computed prompts
	windowed
	digest workloads.Digest
}

// beside carries out a step that asks the source, of which it waits no longer than for
// its patience; then known answers in its place, with book alone. The step ends when the source
// answers, perhaps never. In virtual time nobody could wait for it.
func (d *dispatcher) beside(step, known func() account) (a account, unanswered bool) {
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
		d.unheard.Add(1) // nobody else has to wait as long
		go func() {
			<-done
			d.unheard.Add(-1)
		}()
	}
	d.book.Lock()
	defer d.book.Unlock()
	return known(), true
}

// open opens the window in one step: start makes samples count and returns the
// moment from which. It returns the account up to there.
func (d *dispatcher) open(start func() time.Duration) account {
	at := time.Duration(0)
	begin := func() {
		if d.opened {
			return // by somebody who did not wait for the source
		}
		at = start()
		d.opened = true
		d.pool.open(at)
	}
	a, _ := d.beside(func() account { begin(); return d.accountAt(at) },
		func() account { begin(); return d.counted(at) })
	return a
}

// accountAt returns everything up to a moment of the clock. Callers hold mu.
//
// The source is asked last, and under the same lock: what it has offered and what was started
// belong to one moment.
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
		a.classes[c].ClassLoad, d.told[c] = of, of
	}
	d.input = a.input
	return a
}

// counted is accountAt without asking the source: of what has arrived it knows what had at the
// latest account, and all that was taken. Callers hold book.
func (d *dispatcher) counted(at time.Duration) account {
	a := d.countedAt(at)
	a.input = d.input
	for c := range a.classes {
		of, taken := d.told[c], a.classes[c].started
		of.Offered = max(of.Offered, taken)
		if of.Queued = of.Offered - taken; of.Queued == 0 {
			of.Oldest = workloads.Never
		}
		a.classes[c].ClassLoad = of
	}
	return a
}

// countedAt is what the dispatcher itself has counted up to a moment. Callers hold book.
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

// close ends the handing out and returns the account at the given end of the window. Unanswered: by
// the source, so that what it has offered is not exactly known.
func (d *dispatcher) close(end time.Duration) (a account, unanswered bool) {
	over := func() {
		d.closed = true
		d.cond.Broadcast()
	}
	return d.beside(func() account { over(); return d.accountAt(end) },
		func() account { over(); return d.counted(end) })
}

// account returns everything up to the given moment of the clock.
func (d *dispatcher) account(at time.Duration) account {
	a, _ := d.beside(func() account { return d.accountAt(at) },
		func() account { return d.counted(at) })
	return a
}
