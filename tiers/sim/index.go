package sim

import (
	"errors"
	"sync"

	"kvbench/tiers"
)

// index remembers which entries a tier without bytes holds, so that opening or removing one that is not there
// is an error in it as in any other.
type index struct {
	mu   sync.Mutex
	held map[tiers.ID]struct{}
}

func (x *index) add(o tiers.Object, tier string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.held[o.ID()]; ok {
		return &tiers.OpError{Op: "create", Path: tier, Key: o.Key, Offset: -1, Err: tiers.ErrExists}
	}
	if x.held == nil {
		x.held = make(map[tiers.ID]struct{})
	}
	x.held[o.ID()] = struct{}{}
	return nil
}

func (x *index) has(o tiers.Object, tier string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.held[o.ID()]; !ok {
		return &tiers.OpError{Op: "open", Path: tier, Key: o.Key, Offset: -1, Err: tiers.ErrNotFound}
	}
	return nil
}

func (x *index) remove(objs []tiers.Object, tier string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	for _, o := range objs {
		if _, ok := x.held[o.ID()]; !ok {
			errs = append(errs, &tiers.OpError{Op: "remove", Path: tier, Key: o.Key, Offset: -1, Err: tiers.ErrNotFound})
		}
		delete(x.held, o.ID())
	}
	return errors.Join(errs...)
}
