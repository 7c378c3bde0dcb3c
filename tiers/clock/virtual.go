package clock

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"
)

// Virtual is a discrete-event loop. Functions begun with Go are coroutines on one thread: exactly one
// of them runs at any moment, and time does not advance while it runs. When all of them sleep or wait,
// time jumps to the next event. The order of events alone decides what runs next, so a run in virtual
// time is reproducible to the byte.
//
// The goroutine that made the Virtual drives it: while it sleeps or waits, the coroutines run. When
// its wait is over it continues before any coroutine. Its own sleep ends after all events up to that
// moment, including that moment.
//
// The end of a context takes effect at the begin of a wait, in Wait, and for all coroutines when no
// event is left. Only the driver can interrupt virtual time from outside.
type Virtual struct {
	now      time.Duration
	events   eventHeap
	watching int // number of events that Every has made
	sequence uint64
	ready    []*coroutine // FIFO
	head     int          // of ready
	woken    []*coroutine // woken by events that fired in this step
	conds    []*virtualCond

	current *coroutine // nil: the driver, or a function of At
	driving bool
	all     map[*coroutine]struct{} // coroutines that have not ended

	waiting sync.Mutex // one Wait at a time: an interrupted run may leave another one behind
}

var _ Clock = (*Virtual)(nil)

// coroutine is the function of one call of Go.
type coroutine struct {
	resume func() (struct{}, bool)
	yield  func(struct{}) bool

	ctx   context.Context // of its sleep or wait
	event *virtualEvent   // the event that it waits for
	since uint64          // its place in the order of waits
}

// NewVirtual starts a clock at zero.
func NewVirtual() *Virtual { return &Virtual{all: make(map[*coroutine]struct{})} }

// Now implements Clock.
func (v *Virtual) Now() time.Duration { return v.now }

// after returns the time d from now, or Never.
func (v *Virtual) after(d time.Duration) time.Duration {
	if d > Never-v.now {
		return Never
	}
	return v.now + max(0, d)
}

// Sleep implements Clock.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	at := v.after(d)
	switch {
	case d <= 0 || ctx.Err() != nil:
		return context.Cause(ctx)
	case at == Never:
		return v.NewEvent().Wait(ctx)
	case v.current == nil:
		return v.drive(ctx, at, nil)
	}
	v.current.ctx = ctx
	v.push(event{at: at, co: v.current})
	v.park()
	return context.Cause(ctx)
}

// At implements Clock.
func (v *Virtual) At(t time.Duration, f func()) {
	if t != Never {
		v.push(event{at: max(t, v.now), f: f})
	}
}

// Every implements Clock.
func (v *Virtual) Every(ctx context.Context, interval time.Duration, f func()) {
	var next func()
	again := func() { v.push(event{at: v.after(interval), f: next, watches: true}) }
	next = func() {
		if ctx.Err() == nil {
			f()
			again()
		}
	}
	again()
}

func (v *Virtual) push(e event) {
	v.sequence++
	e.seq = v.sequence
	if e.watches {
		v.watching++
	}
	v.events.push(e)
}

// Go implements Clock. f begins when the loop reaches it.
func (v *Virtual) Go(f func()) {
	co := &coroutine{}
	co.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		co.yield = yield
		f()
	})
	v.all[co] = struct{}{}
	v.wake(co)
}

// Wait implements Clock. It first wakes the coroutines whose context has ended.
func (v *Virtual) Wait() {
	v.waiting.Lock()
	defer v.waiting.Unlock()
	v.wakeEnded()
	for len(v.all) > 0 {
		if !v.step(Never) && !v.wakeEnded() {
			return // the others wait for an action of the caller
		}
	}
}

// drive runs the loop until the event fires, the time has passed or ctx ends.
func (v *Virtual) drive(ctx context.Context, until time.Duration, e *virtualEvent) error {
	if v.driving {
		panic("clock: a function of At must not block")
	}
	v.driving = true
	defer func() { v.driving = false }()
	for {
		switch {
		case e != nil && e.fired:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case v.step(until):
		case v.now < until && v.wakeEnded():
		case until == Never:
			return ErrStill
		default:
			v.now = until
			return nil
		}
	}
}

// Still reports that all coroutines wait and no event is left, except events of Every.
func (v *Virtual) Still() bool {
	return v.head == len(v.ready) && len(v.events) == v.watching
}

// step runs one coroutine or one event. It returns false if nothing happens up to the given time, to
// which it advances the clock, or if no event is left.
func (v *Virtual) step(until time.Duration) bool {
	if v.head == len(v.ready) {
		for _, c := range v.conds {
			c.serve()
		}
	}
	if v.head < len(v.ready) {
		co := v.ready[v.head]
		v.head++
		if v.head == len(v.ready) {
			v.ready, v.head = v.ready[:0], 0
		}
		v.run(co)
		return true
	}
	switch {
	case len(v.events) == v.watching && v.now < until:
		return false
	case len(v.events) == 0 || v.events[0].at > until:
		v.now = until
		return false
	}
	e := v.events.pop()
	v.now = max(v.now, e.at)
	if e.watches {
		v.watching--
	}
	if e.co != nil {
		v.run(e.co)
	} else {
		e.f()
		v.wakeWoken()
	}
	return true
}

func (v *Virtual) run(co *coroutine) {
	v.current = co
	if _, more := co.resume(); !more {
		delete(v.all, co)
	}
	v.current = nil
	v.wakeWoken()
}

// park returns control to the loop.
func (v *Virtual) park() { v.current.yield(struct{}{}) }

func (v *Virtual) wake(co *coroutine) { v.ready = append(v.ready, co) }

// wakeWoken makes the coroutines ready whose events have fired, in the order of their waits.
func (v *Virtual) wakeWoken() {
	if len(v.woken) == 0 {
		return
	}
	slices.SortFunc(v.woken, func(a, b *coroutine) int { return cmp.Compare(a.since, b.since) })
	v.ready = append(v.ready, v.woken...)
	v.woken = v.woken[:0]
}

// wakeEnded makes the coroutines ready whose context has ended: first sleepers, in the order of their
// times, then those that wait for events. It reports whether there were any.
func (v *Virtual) wakeEnded() bool {
	before := len(v.ready)
	var rest eventHeap // sorted, so it is a heap
	for len(v.events) > 0 {
		e := v.events.pop()
		if e.co != nil && e.co.ctx.Err() != nil {
			v.wake(e.co)
		} else {
			rest = append(rest, e)
		}
	}
	v.events = rest
	for co := range v.all {
		if e := co.event; e != nil && !e.fired && co.ctx.Err() != nil {
			e.waiters = slices.DeleteFunc(e.waiters, func(w *coroutine) bool { return w == co })
			co.event = nil
			v.woken = append(v.woken, co)
		}
	}
	v.wakeWoken()
	return len(v.ready) > before
}

// NewEvent implements Clock.
func (v *Virtual) NewEvent() Event { return &virtualEvent{v: v} }

type virtualEvent struct {
	v       *Virtual
	fired   bool
	waiters []*coroutine
}

func (e *virtualEvent) Fired() bool { return e.fired }

func (e *virtualEvent) Fire() {
	e.fired = true
	e.v.woken = append(e.v.woken, e.waiters...)
	for _, co := range e.waiters {
		co.event = nil
	}
	e.waiters = nil
}

func (e *virtualEvent) Wait(ctx context.Context) error {
	v := e.v
	switch {
	case e.fired:
		return nil
	case v.current == nil:
		return v.drive(ctx, Never, e)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	v.sequence++
	co := v.current
	co.ctx, co.since, co.event = ctx, v.sequence, e
	e.waiters = append(e.waiters, co)
	v.park()
	if e.fired {
		return nil
	}
	return context.Cause(ctx)
}

// NewCond implements Clock.
func (v *Virtual) NewCond(mu *sync.Mutex) Cond {
	c := &virtualCond{v: v, mu: mu}
	v.conds = append(v.conds, c)
	return c
}

// virtualCond is a condition variable of coroutines. Signals do not add up: one waiter is woken when no
// coroutine is ready, and signals again if there is more to do.
type virtualCond struct {
	v        *Virtual
	mu       *sync.Mutex
	idle     []*coroutine
	signaled bool
}

// Signal wakes a waiter later, see virtualCond.
func (c *virtualCond) Signal() { c.signaled = true }

// Broadcast wakes all waiters.
func (c *virtualCond) Broadcast() {
	for _, co := range c.idle {
		c.v.wake(co)
	}
	c.idle = c.idle[:0]
}

// Wait parks the caller. The caller has just checked the condition, which settles all earlier signals.
// That saves most switches between coroutines.
func (c *virtualCond) Wait() {
	c.signaled = false
	c.idle = append(c.idle, c.v.current)
	c.mu.Unlock()
	c.v.park()
	c.mu.Lock()
}

// serve wakes the last waiter after a signal.
func (c *virtualCond) serve() {
	if !c.signaled || len(c.idle) == 0 {
		return
	}
	c.signaled = false
	last := len(c.idle) - 1
	c.v.wake(c.idle[last])
	c.idle = c.idle[:last]
}

// event is a time at which a coroutine continues or a function is called.
type event struct {
	at      time.Duration
	seq     uint64 // order of events at the same time: the order of their creation
	co      *coroutine
	f       func()
	watches bool // made by Every: it does not keep the clock running
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// eventHeap is a binary min-heap. container/heap would box every event: this is the
// innermost loop of a simulation.
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
