package clock

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Never is a time that is never reached.
const Never = time.Duration(math.MaxInt64)

// ErrStill reports, in virtual time, a wait that can never end: all coroutines wait and no event is
// left.
var ErrStill = errors.New("all coroutines wait and no event is left")

// Clock is the only source of time and of waits in a run.
type Clock interface {
	// Now returns the monotonic time since the clock was made.
	Now() time.Duration
	// Sleep returns early, with the cause, when ctx ends. Sleep for Never waits for the end of ctx.
	Sleep(ctx context.Context, d time.Duration) error
	// At calls f once at the time t, or soon if t has passed. f must not block.
	At(t time.Duration, f func())
	// Every calls f at intervals until ctx ends. Wait waits for it, as for Go. It is for observers:
	// in virtual time it does not keep the clock running, and f must not block.
	Every(ctx context.Context, interval time.Duration, f func())
	// Go runs f concurrently with the caller.
	Go(f func())
	NewEvent() Event
	NewCond(mu *sync.Mutex) Cond
	// Wait returns when all functions begun with Go have ended.
	Wait()
}

// Event fires once. Any number of goroutines may wait for it.
type Event interface {
	// Fire ends all waits, present and future. A second call does nothing.
	Fire()
	Fired() bool
	// Wait returns nil if the event has fired, also if ctx has ended, too; otherwise ctx's cause.
	Wait(ctx context.Context) error
}

// Cond is a condition variable whose waiters check their condition again under the lock. Signal wakes
// at least one waiter, if there is one, unless the caller itself checks the condition first.
type Cond interface {
	Signal()
	Broadcast()
	Wait() // called with the lock held
}

// Wall is real time since its creation. In a synctest bubble it is the bubble's time.
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

// Busy measures the time in which at least one operation was in progress: concurrent operations count
// once. The zero Busy is ready.
type Busy struct {
	mu     sync.Mutex
	inside int
	since  time.Duration // when inside became 1
	total  time.Duration
}

// Enter counts the begin of an operation at the time now, Exit its end.
func (b *Busy) Enter(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside++; b.inside == 1 {
		b.since = now
	}
}

// Exit counts the end of an operation.
func (b *Busy) Exit(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside--; b.inside == 0 {
		b.total += now - b.since
	}
}

// Total returns the busy time up to the last moment without an operation in progress.
func (b *Busy) Total() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}
