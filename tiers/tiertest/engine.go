package tiertest

import (
	"sync"

	"kvbench/tiers/ioengine"
)

// Engine wraps an I/O engine. A test can observe its requests, and can hold them back like a device
// that hangs.
type Engine struct {
	ioengine.Engine

	mu   sync.Mutex // not held while a request is submitted to the inner engine
	seen func(*ioengine.Op)
	hold func(*ioengine.Op) bool
	held []*ioengine.Op
}

var _ ioengine.Engine = (*Engine)(nil)

// NewEngine returns an Engine that passes all requests.
func NewEngine(inner ioengine.Engine) *Engine {
	return &Engine{Engine: inner, seen: func(*ioengine.Op) {},
		hold: func(*ioengine.Op) bool { return false }}
}

// See calls f with every request before it is submitted.
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

// Held returns how many requests are held back.
func (e *Engine) Held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held)
}

// Release submits all held requests, and holds no more.
func (e *Engine) Release() {
	// Submit without the lock: requests may complete at once and submit others.
	e.mu.Lock()
	held := e.held
	e.held, e.hold = nil, func(*ioengine.Op) bool { return false }
	e.mu.Unlock()
	for _, op := range held {
		e.Engine.Submit(op)
	}
}

// Submit implements ioengine.Engine. The caller cannot tell a held request from a submitted one.
func (e *Engine) Submit(op *ioengine.Op) {
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
