package clock

import (
	"context"
	"sync"
	"time"
)

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
		return nil
	case <-ctx.Done():
		if e.Fired() {
			return nil
		}
		return context.Cause(ctx)
	}
}
