package tiertest

import (
	"sync"

	"kvbench/tiers/ioengine"
)

// Engine is an engine in front of another. A test is told of its requests and may hold them back,
// as a device does that does not answer.
type Engine struct {
	ioengine.Engine

	mu   sync.Mutex // not held while requests are made
	seen func(*ioengine.Op)
	hold func(*ioengine.Op) bool
	held []*ioengine.Op
}

var _ ioengine.Engine = (*Engine)(nil)

// NewEngine lets everything pass.
func NewEngine(inner ioengine.Engine) *Engine {
	return &Engine{Engine: inner, seen: func(*ioengine.Op) {},
		hold: func(*ioengine.Op) bool { return false }}
}

// See calls f with every request, before it is made.
func (e *Engine) See(f func(*ioengine.Op)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = f
}

// Hold keeps the requests for which f is true until Release.
func (e *Engine) Hold(f func(*ioengine.Op) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hold = f
}

// Held is how many requests wait.
func (e *Engine) Held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held)
}

// Release makes all requests that were held back, and holds no more.
func (e *Engine) Release() {
	// Outside of the lock: requests may be done at once, and submit others.
	e.mu.Lock()
	held := e.held
	e.held, e.hold = nil, func(*ioengine.Op) bool { return false }
	e.mu.Unlock()
	e.Engine.Submit(held...)
}

// Submit implements ioengine.Engine. A request that is held counts as begun for everybody but the
// device.
func (e *Engine) Submit(ops ...*ioengine.Op) {
	for _, op := range ops {
		e.mu.Lock()
		e.seen(op)
		held := e.hold(op)
		if held {
			e.held = append(e.held, op)
		}
		e.mu.Unlock()
		if !held {
			e.Engine.Submit(op)
		}
	}
}
