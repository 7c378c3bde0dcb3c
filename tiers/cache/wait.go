package cache

import (
	"context"

	"kvbench/tiers/clock"
)

// slots is the write limit: so many may be inside, the others wait in order of
// coming. Guarded by Cache.mu.
type slots struct {
	free    int
	bounded bool
	line    []clock.Event
}

// enter takes a slot, waiting for it if need be. After an error it has none.
func (c *Cache) enter(ctx context.Context) error {
	c.mu.Lock()
	if c.slots.free > 0 {
		c.slots.free--
		c.mu.Unlock()
		return nil
	}
	mine := c.clock.NewEvent()
	c.slots.line = append(c.slots.line, mine)
	c.mu.Unlock()
	err := mine.Wait(ctx)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if mine.Fired() { // in the same moment
		c.leaveLocked()
	} else {
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
	next.Fire()
}
