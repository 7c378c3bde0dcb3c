package enginetier

import (
	"sync"
	"time"

	"kvbench/tiers/ioengine"
)

// limits pass on as many requests at a time as an engine has threads for them, in the order in
// which they come.
type limits struct {
	engine ioengine.Engine
	lent   bool // the threads of either direction take the other's when they have none of their own

	mu            sync.Mutex
	loads, stores limit
}

// limit is that of a direction.
type limit struct {
	of    *limits
	other *limit
	most  int // threads; 0 = one for each request
	busy  int // requests of this direction that are under way
	queue []held
}

// held is a request that waits, and where it is noted when it need not any more: the engine of a
// real server would have let it wait as well, so a verdict must not blame this process for it.
type held struct {
	op     *ioengine.Op
	passed *time.Duration
}

// newLimits are those of an engine with so many threads for each direction. Where they are lent,
// and one direction has no limit, there is nothing to lend.
func newLimits(engine ioengine.Engine, loads, stores int, lent bool) *limits {
	l := &limits{engine: engine, lent: lent && loads > 0 && stores > 0}
	l.loads = limit{of: l, other: &l.stores, most: loads}
	l.stores = limit{of: l, other: &l.loads, most: stores}
	return l
}

// free says whether a thread has nothing to do that would take a request of this direction.
func (l *limit) free() bool {
	if l.of.lent {
		return l.busy+l.other.busy < l.most+l.other.most
	}
	return l.busy < l.most
}

// submit begins a request, now or when another is done. What waits here does not count as being at
// the device: an IO's Begun is when its call is made.
func (l *limit) submit(op *ioengine.Op, passed *time.Duration) {
	*passed = 0
	if l.most > 0 {
		l.of.mu.Lock()
		if !l.free() {
			l.queue = append(l.queue, held{op, passed})
			l.of.mu.Unlock()
			return
		}
		l.busy++
		l.of.mu.Unlock()
	}
	l.of.engine.Submit(op)
}

// left begins the next request in the place of one that is done, which it was just now: of its own
// direction, if the threads of that have not all got one, else of whichever has one.
func (l *limit) left(now time.Duration) {
	if l.most == 0 {
		return
	}
	l.of.mu.Lock()
	l.busy--
	var next held
	for _, from := range l.order() {
		if len(from.queue) > 0 {
			next, from.queue = from.queue[0], from.queue[1:]
			from.busy++
			break
		}
	}
	l.of.mu.Unlock()
	if next.op != nil {
		*next.passed = now
		l.of.engine.Submit(next.op)
	}
}

// order is whose requests the thread that has just become free looks for. All threads are busy, or
// nobody waits: so it is one of the direction that has fewer under way than threads.
func (l *limit) order() []*limit {
	switch {
	case !l.of.lent:
		return []*limit{l}
	case l.busy < l.most:
		return []*limit{l, l.other}
	}
	return []*limit{l.other, l}
}
