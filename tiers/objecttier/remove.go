package objecttier

import (
	"context"
	"errors"
	"sync"

	"kvbench/tiers"
)

// Remove deletes objects, one by one or, where there are many, a thousand at a time. One that is
// being read is deleted when its last reader closes.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	if err := t.owner.check(); err != nil { // another run may have objects of these names
		return t.fail("remove", objs[0], -1, err)
	}
	// Whoever evicts counts on the room: a window's end stops no deletion.
	ctx = context.WithoutCancel(ctx)
	var errs []error
	var now []tiers.Object
	t.mu.Lock()
	for _, o := range objs {
		e := t.entries[o.ID()]
		// Twice the same in one call is not there the second time.
		if e == nil || e.state != present {
			errs = append(errs, t.fail("remove", o, -1, tiers.ErrNotFound))
			continue
		}
		e.state = leaving
		if e.readers == 0 {
			now = append(now, o)
		}
	}
	t.mu.Unlock()
	if len(now) == 1 {
		return errors.Join(append(errs, t.delete(ctx, now[0]))...)
	}
	return errors.Join(append(errs, t.deleteAll(ctx, now))...)
}

// deleteAll deletes many that nobody reads. Of those that the store has kept the entries stay, so
// that they are tried again at the end; nobody can open them.
func (t *Tier) deleteAll(ctx context.Context, objs []tiers.Object) error {
	if len(objs) == 0 {
		return nil
	}
	left, err := t.deleteKeys(ctx, objs, func(o tiers.Object) { t.gone(o, true) })
	for _, o := range left {
		t.gone(o, false)
	}
	if err != nil {
		return t.fail("remove", objs[0], -1, err)
	}
	return nil
}

// deleteKeys deletes the objects of entries, tells of each entry of which the last one has gone,
// perhaps by several goroutines at once, and returns the others.
func (t *Tier) deleteKeys(ctx context.Context, entries []tiers.Object,
	gone func(tiers.Object)) (left map[tiers.ID]tiers.Object, err error) {
	byKey := make(map[string]tiers.ID, len(entries))
	keys := make([]string, 0, len(entries))
	pieces := make(map[tiers.ID]int, len(entries))
	left = make(map[tiers.ID]tiers.Object, len(entries))
	for _, o := range entries {
		left[o.ID()] = o
		for _, piece := range t.pieces(o) {
			key := t.key(piece)
			byKey[key], keys = o.ID(), append(keys, key)
			pieces[o.ID()]++
		}
	}
	var mu sync.Mutex
	err = t.client.DeleteAll(ctx, keys, func(key string) {
		mu.Lock()
		id := byKey[key]
		pieces[id]--
		o, last := left[id], pieces[id] == 0
		if last {
			delete(left, id)
		}
		mu.Unlock()
		if last {
			gone(o)
		}
	})
	return left, err
}
