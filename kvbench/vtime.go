package kvbench

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// virtualTime is the discrete-event loop of a simulation and its Clock. The
// simulated workers are coroutines of one thread: exactly one of them runs at
// any moment, and time stands still while it does. When all of them sleep or
// wait, time jumps to the next event. What runs next depends on the order of
// events alone, so a simulation is reproducible to the byte.
//
// Nothing in it is safe for concurrent use: it belongs to the goroutine that
// calls run.
type virtualTime struct {
	now     time.Duration
	horizon time.Duration // no event beyond it happens; never: no bound

	events   eventHeap
	sequence uint64
	ready    []*coroutine // in the order in which they became so
	head     int          // of ready
	blocked  []blockedCoroutine
	current  *coroutine // nil: the loop itself
	all      []*coroutine
}

// coroutine is one simulated worker.
type coroutine struct {
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	ended  bool
}

type blockedCoroutine struct {
	co    *coroutine
	until <-chan struct{}
	ctx   context.Context
}

var _ Clock = (*virtualTime)(nil)

var errNotSimulated = errors.New("waiting outside of the simulation")

func newVirtualTime() *virtualTime { return &virtualTime{horizon: time.Duration(never)} }

// Now implements Clock.
func (v *virtualTime) Now() time.Duration { return v.now }

// Sleep implements Clock for coroutines.
func (v *virtualTime) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return v.sleepUntil(ctx, v.now+d)
}

func (v *virtualTime) sleepUntil(ctx context.Context, at time.Duration) error {
	if v.current == nil {
		return errNotSimulated
	}
	if at <= v.now || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return v.queueUntil(ctx, at)
}

// queueUntil is sleepUntil behind all others who wait for the same moment, the
// present one included.
func (v *virtualTime) queueUntil(ctx context.Context, at time.Duration) error {
	if v.current == nil {
		return errNotSimulated
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v.push(event{at: max(at, v.now), co: v.current})
	v.park()
	return context.Cause(ctx)
}

// at calls f at a moment, from the loop.
func (v *virtualTime) at(moment time.Duration, f func()) { v.push(event{at: max(moment, v.now), f: f}) }

func (v *virtualTime) push(e event) {
	v.sequence++
	e.seq = v.sequence
	v.events.push(e)
}

// block is a tiers.BlockFunc.
func (v *virtualTime) block(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		return nil
	default:
	}
	if v.current == nil {
		return errNotSimulated
	}
	v.blocked = append(v.blocked, blockedCoroutine{v.current, until, ctx})
	v.park()
	select {
	case <-until:
		return nil
	default:
		return context.Cause(ctx)
	}
}

// park gives control back to the loop.
func (v *virtualTime) park() {
	co := v.current
	co.yield(struct{}{})
}

// spawn makes a coroutine, which begins when the loop comes to it.
func (v *virtualTime) spawn(body func()) {
	co := &coroutine{}
	co.resume, co.stop = iter.Pull(func(yield func(struct{}) bool) {
		co.yield = yield
		body()
	})
	v.all = append(v.all, co)
	v.wake(co)
}

func (v *virtualTime) wake(co *coroutine) { v.ready = append(v.ready, co) }

// step lets one coroutine run or one event happen. False: nothing will ever
// happen again, or nothing before the horizon, where time then stands.
func (v *virtualTime) step() bool {
	if v.head < len(v.ready) {
		co := v.ready[v.head]
		v.head++
		if v.head == len(v.ready) {
			v.ready, v.head = v.ready[:0], 0
		}
		v.run(co)
		return true
	}
	if len(v.events) == 0 {
		return false
	}
	if v.events[0].at > v.horizon {
		v.now = v.horizon
		return false
	}
	e := v.events.pop()
	v.now = max(v.now, e.at)
	if e.f != nil {
		e.f()
		v.unblock(false)
		return true
	}
	v.run(e.co)
	return true
}

// idle says whether nobody is ready to go on at the present moment.
func (v *virtualTime) idle() bool { return v.head == len(v.ready) }

func (v *virtualTime) run(co *coroutine) {
	if co.ended {
		return
	}
	v.current = co
	_, more := co.resume()
	v.current = nil
	co.ended = !more
	v.unblock(false)
}

// unblock makes those ready whose wait is over, in the order in which they
// began to wait; all of them when the simulation ends.
func (v *virtualTime) unblock(all bool) {
	if len(v.blocked) == 0 {
		return
	}
	kept := v.blocked[:0]
	for _, b := range v.blocked {
		select {
		case <-b.until:
			v.wake(b.co)
		default:
			if all {
				v.wake(b.co)
			} else {
				kept = append(kept, b)
			}
		}
	}
	clear(v.blocked[len(kept):])
	v.blocked = kept
}

// finish lets every coroutine run to its end at the present moment. The caller
// has cancelled their context, so that none waits again.
func (v *virtualTime) finish() {
	for len(v.events) > 0 {
		if e := v.events.pop(); e.co != nil {
			v.wake(e.co)
		}
	}
	v.unblock(true)
	for v.head < len(v.ready) || len(v.blocked) > 0 {
		for v.head < len(v.ready) {
			v.step()
		}
		v.unblock(true)
	}
	for _, co := range v.all {
		co.stop()
	}
	v.all = nil
}

// event is a moment at which a coroutine goes on or a function is called.
type event struct {
	at  time.Duration
	seq uint64 // events of one moment happen in the order in which they were made
	co  *coroutine
	f   func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// eventHeap is a binary min-heap.
type eventHeap []event

func (h *eventHeap) push(e event) {
	s := append(*h, e)
	*h = s
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(&s[parent]) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *eventHeap) pop() event {
	s := *h
	first, last := s[0], len(s)-1
	s[0], s[last] = s[last], event{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && s[child+1].before(&s[child]) {
			child++
		}
		if !s[child].before(&s[i]) {
			return first
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}

// virtualCond is a condition variable of coroutines. Signals do not add up: one
// waiter is woken, and wakes the next one itself if there is more to do, as the
// dispatcher does.
type virtualCond struct {
	v        *virtualTime
	mu       *sync.Mutex
	idle     []*coroutine
	signaled bool // an alarm or a coroutine that goes on to wait for something else has signalled
}

// Signal notes that somebody may find something to do.
func (c *virtualCond) Signal() { c.signaled = true }

// Broadcast wakes all.
func (c *virtualCond) Broadcast() {
	for _, co := range c.idle {
		c.v.wake(co)
	}
	c.idle = c.idle[:0]
}

// Wait parks the caller, who has just seen that there is nothing to do: signals
// up to here have been answered by that.
func (c *virtualCond) Wait() {
	c.signaled = false
	c.idle = append(c.idle, c.v.current)
	c.mu.Unlock()
	c.v.park()
	c.mu.Lock()
}

// serve wakes a waiter if there was a signal. The loop calls it between steps.
func (c *virtualCond) serve() {
	if !c.signaled || len(c.idle) == 0 {
		return
	}
	c.signaled = false
	last := len(c.idle) - 1
	c.v.wake(c.idle[last])
	c.idle = c.idle[:last]
}
