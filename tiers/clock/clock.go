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
	// Every calls f at intervals until ctx ends. Wait waits for it, as for Go. It is for those who watch: in virtual
	// time it alone keeps nothing going, and f must not block.
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
	// Wait returns nil when the event has fired, which counts also where ctx has ended, too; else the cause of ctx's end.
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
