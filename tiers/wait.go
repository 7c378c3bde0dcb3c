package tiers

import "context"

// BlockFunc waits until ready is closed or ctx ends. It returns nil in the
// first case and the cause in the second.
type BlockFunc func(ctx context.Context, ready <-chan struct{}) error

// block is the BlockFunc of real runs: the calling goroutine waits.
func block(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	default:
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slots is the write limit: so many may be inside, the others wait in order of
// coming. Guarded by Cache.mu.
type slots struct {
	free    int
	bounded bool
	line    []chan struct{}
}

// enter takes a slot, waiting for it if need be. After an error it has none.
func (c *Cache) enter(ctx context.Context) error {
	c.mu.Lock()
	if c.slots.free > 0 {
		c.slots.free--
		c.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	c.slots.line = append(c.slots.line, mine)
	c.mu.Unlock()
	err := c.block(ctx, mine)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-mine: // in the same moment
		c.leaveLocked()
	default:
		c.slots.line = without(c.slots.line, mine)
	}
	return err
}

// leave gives the slot to whoever waits longest.
func (c *Cache) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked()
}

func (c *Cache) leaveLocked() {
	if len(c.slots.line) == 0 {
		c.slots.free++
		return
	}
	next := c.slots.line[0]
	c.slots.line = c.slots.line[1:]
	close(next)
}
