package kvbench

import (
	"context"
	"time"
)

// Clock is the engine's only source of time. Wall time drives real runs; tests
// use synctest bubbles or a clock of their own.
type Clock interface {
	// Now is monotonic time since an arbitrary origin.
	Now() time.Duration
	// Sleep returns early with the cause when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// WallClock is real time, counted from its creation.
type WallClock struct{ origin time.Time }

// NewWallClock starts a clock at zero.
func NewWallClock() *WallClock { return &WallClock{time.Now()} }

// Now implements Clock.
func (c *WallClock) Now() time.Duration { return time.Since(c.origin) }

// Sleep implements Clock.
func (c *WallClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var _ Clock = (*WallClock)(nil)
