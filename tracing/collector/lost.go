package collector

import (
	"errors"
	"time"
)

// Where programs miss completions (bpf/counters.h), the gauge of in-flight requests stays too high
// until an address is used again, and nobody sees when the device is idle. So a Collector asks the
// kernel's own count from time to time: seldom, until it has found a lost completion once, because
// on most machines there never is one.
const (
	lookSeldom = 100 * time.Millisecond
	lookOften  = 4 * time.Millisecond
)

// lostInFlight are requests whose end was not seen.
type lostInFlight struct {
	counted    [2]int64 // and that count as in flight
	recovered  [2]int64 // and that no longer do
	unobserved int64    // time of the window in which the first kind counted, in ns
}

// watchLosses recovers them until stop is closed.
func (c *Collector) watchLosses() {
	for pause := lookSeldom; ; {
		select {
		case <-c.stop:
			return
		case <-time.After(pause):
		}
		if c.recoverLost() {
			pause = lookOften
		}
	}
}

// recoverLost looks for lost completions: requests that the programs still follow while the device
// has nothing in flight. It says whether there were any.
func (c *Collector) recoverLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	e, err := c.programs.edge()
	if err != nil || e.inFlight[dirRead]+e.inFlight[dirWrite] <= 0 {
		return false
	}
	// Read after the edge: what was dispatched before it and is not counted here is done.
	if s := c.readStat(); s == nil || s.InFlight != 0 {
		return false
	}
	since, err := c.programs.recoverLost(e.now)
	w := &c.window
	if err != nil {
		w.err = err
		return false
	}
	if since == 0 {
		return false
	}
	if w.opened && !w.shut {
		w.unobserved += int64(e.now - max(since, min(w.before.now, e.now)))
	}
	return true
}

// lostAfter is how long a request may be in flight before it counts as lost although the device is
// busy. Drivers give up on a request after 30 s.
const lostAfter = 60 * time.Second

// countLost finds requests whose completion no program saw and whose address has not come back, at
// the end of a window: a device that says it has nothing in flight is believed.
func (c *Collector) countLost() {
	w := &c.window
	now := w.after.now
	if s := c.readStat(); s == nil || s.InFlight != 0 {
		now -= min(now, uint64(lostAfter))
	}
	lost, err := c.programs.lostInFlight(now)
	w.lost, w.err = lost, errors.Join(w.err, err)
}
