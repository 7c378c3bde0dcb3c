package clock

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Never is a moment that does not come.
const Never = time.Duration(math.MaxInt64)

// ErrStill reports, in virtual time, a wait that will never end: everybody waits and
// nothing is left that could happen.
var ErrStill = errors.New("everybody waits and nothing will happen")

// Clock is the only source of time of a run, and of everything that waits.
type Clock interface {
	// Now is monotonic time since the clock was made.
	Now() time.Duration
	// Sleep returns early with the cause when ctx ends. To sleep for Never is to wait for that.
	Sleep(ctx context.Context, d time.Duration) error
	// At calls f once at a moment, or soon when that has passed. f must not block.
	At(t time.Duration, f func())
	// Every calls f at intervals until ctx ends. Wait waits for it, as for Go. It is for those who
	// watch: in virtual time it alone keeps nothing going, and f must not block.
	Every(ctx context.Context, interval time.Duration, f func())
	// Go runs f beside the caller.
	Go(f func())
	NewEvent() Event
	NewCond(mu *sync.Mutex) Cond
	// Wait returns when everything begun with Go has ended.
	Wait()
}

// Event happens once, and any number may wait for it.
type Event interface {
	// Fire lets all who wait go on, and all who will. Firing again does nothing.
	Fire()
	Fired() bool
	// Wait returns nil when the event has fired, which counts also where ctx has ended, too; else
	// the cause of ctx's end.
	Wait(ctx context.Context) error
}

// Cond is a condition variable: what many wait for who look again under a lock. Signal
// wakes at least one who waits at this moment, if there is one, unless the caller itself
// looks again before anybody else does.
type Cond interface {
	Signal()
	Broadcast()
	Wait() // called with the lock held
}

// Wall is real time, counted from its creation. In a synctest bubble it is the bubble's.
type Wall struct {
	origin time.Time
	begun  sync.WaitGroup
}

var _ Clock = (*Wall)(nil)

// NewWall starts a clock at zero.
func NewWall() *Wall { return &Wall{origin: time.Now()} }

// Now implements Clock.
func (c *Wall) Now() time.Duration { return time.Since(c.origin) }

// Sleep implements Clock.
func (c *Wall) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	var over <-chan time.Time // nil: never
	if d != Never {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// At implements Clock.
func (c *Wall) At(t time.Duration, f func()) {
	if t != Never {
		time.AfterFunc(t-c.Now(), f)
	}
}

// Every implements Clock.
func (c *Wall) Every(ctx context.Context, interval time.Duration, f func()) {
	c.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				f()
			}
		}
	})
}

// Go implements Clock.
func (c *Wall) Go(f func()) { c.begun.Go(f) }

// Wait implements Clock.
func (c *Wall) Wait() { c.begun.Wait() }

// NewEvent implements Clock.
func (c *Wall) NewEvent() Event { return &wallEvent{fired: make(chan struct{})} }

// NewCond implements Clock.
func (c *Wall) NewCond(mu *sync.Mutex) Cond { return sync.NewCond(mu) }

type wallEvent struct {
	once  sync.Once
	fired chan struct{}
}

func (e *wallEvent) Fire() { e.once.Do(func() { close(e.fired) }) }

func (e *wallEvent) Fired() bool {
	select {
	case <-e.fired:
		return true
	default:
		return false
	}
}

func (e *wallEvent) Wait(ctx context.Context) error {
	select {
	case <-e.fired:
	case <-ctx.Done():
		if !e.Fired() {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Busy is for how long at least one of something was under way: parallel ones count once. The zero
// Busy is ready.
type Busy struct {
	mu     sync.Mutex
	inside int
	since  time.Duration // when the first of those came
	total  time.Duration
}

// Enter counts one in, Exit out, at that moment of a clock.
func (b *Busy) Enter(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside++; b.inside == 1 {
		b.since = now
	}
}

// Exit counts one out.
func (b *Busy) Exit(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside--; b.inside == 0 {
		b.total += now - b.since
	}
}

// Total is the time until the last moment at which nothing was under way.
func (b *Busy) Total() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}
