package filetier

import (
	"sync"
	"time"

	"kvbench/tiers/ioengine"
)

// limits submits requests to the I/O engine in FIFO order. At most as many are in flight as the
// imitated engine has threads.
type limits struct {
	engine ioengine.Engine
	shared bool // idle threads of one direction take requests of the other

	mu            sync.Mutex
	loads, stores limit
}

// limit is the limit of one direction.
type limit struct {
	all   *limits
	other *limit
	most  int // threads; 0 = one for each request
	busy  int // requests of this direction in flight
	queue []queued
}

// queued is a request that waits for a thread. *passed gets the end of the wait. The engine's server
// would make it wait as well, so the verdict does not attribute the wait to this process.
type queued struct {
	op     *ioengine.Op
	passed *time.Duration
}

// newLimits returns the limits of an engine with so many threads per direction. Shared has no effect
// if a direction has no limit.
func newLimits(engine ioengine.Engine, n Threads, shared bool) *limits {
	l := &limits{engine: engine, shared: shared && n.Loads > 0 && n.Stores > 0}
	l.loads = limit{all: l, other: &l.stores, most: n.Loads}
	l.stores = limit{all: l, other: &l.loads, most: n.Stores}
	return l
}

// threads returns the limit of the direction of a request.
func (l *limits) threads(kind ioengine.Kind) *limit {
	if kind == ioengine.Read {
		return &l.loads
	}
	return &l.stores
}

// free reports whether an idle thread can take a request of this direction.
func (l *limit) free() bool {
	if l.all.shared {
		return l.busy+l.other.busy < l.most+l.other.most
	}
	return l.busy < l.most
}

// submit submits a request, now or when another one has completed. It sets *passed to the end of the
// wait, or to 0. The wait is not service time: an IO's Begun is the time of its call.
func (l *limit) submit(passed *time.Duration, op *ioengine.Op) {
	*passed = 0
	if l.most > 0 {
		l.all.mu.Lock()
		if !l.free() {
			l.queue = append(l.queue, queued{op, passed})
			l.all.mu.Unlock()
			return
		}
		l.busy++
		l.all.mu.Unlock()
	}
	l.all.engine.Submit(op)
}

// done ends a request at the time now and submits the next queued request, in the order of order.
func (l *limit) done(now time.Duration) {
	if l.most == 0 {
		return
	}
	l.all.mu.Lock()
	l.busy--
	var next queued
	for _, from := range l.order() {
		if len(from.queue) > 0 {
			next, from.queue = from.queue[0], from.queue[1:]
			from.busy++
			break
		}
	}
	l.all.mu.Unlock()
	if next.op != nil {
		*next.passed = now
		l.all.engine.Submit(next.op)
	}
}

// order returns the queues from which a free thread takes a request, first choice first. A request
// waits only if all threads are busy. So the free thread belongs to the direction with fewer requests
// in flight than threads.
func (l *limit) order() []*limit {
	switch {
	case !l.all.shared:
		return []*limit{l}
	case l.busy < l.most:
		return []*limit{l, l.other}
	}
	return []*limit{l.other, l}
}
