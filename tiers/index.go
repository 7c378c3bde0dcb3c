package tiers

import (
	"sync"
)

// index remembers which entries a tier without bytes holds, so that opening or removing one that is not there
// is an error in it as in any other.
type index struct {
	mu   sync.Mutex
	held map[id]struct{}
}

func (x *index) add(o Object, tier string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.held[o.id()]; ok {
		return &OpError{Op: "create", Path: tier, Key: o.Key, Offset: -1, Err: errExists}
	}
	if x.held == nil {
		x.held = make(map[id]struct{})
	}
	x.held[o.id()] = struct{}{}
	return nil
}

func (x *index) has(o Object, tier string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.held[o.id()]; !ok {
		return &OpError{Op: "open", Path: tier, Key: o.Key, Offset: -1, Err: ErrNotFound}
	}
	return nil
}

func (x *index) remove(o Object, tier string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.held[o.id()]; !ok {
		return &OpError{Op: "remove", Path: tier, Key: o.Key, Offset: -1, Err: ErrNotFound}
	}
	delete(x.held, o.id())
	return nil
}
