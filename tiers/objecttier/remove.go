package objecttier

import (
	"context"
	"errors"
	"sync"

	"kvbench/tiers"
)

// Remove deletes objects: one by one or, where there are many, a thousand in a request. An object
// that is being read is deleted when its last read ends. The end of ctx stops no deletion, because
// the cache counts on the room.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	var errs []error
	var now []tiers.Object
	t.mu.Lock()
	for _, o := range objs {
		e := t.entries[o.ID()]
		if e == nil || e.state != present { // also the second of two equal ones in a call
			errs = append(errs, t.fail("remove", o, -1, tiers.ErrNotFound))
			continue
		}
		e.state = leaving
		if e.readers == 0 {
			now = append(now, o)
		}
	}
	t.mu.Unlock()
	return errors.Join(append(errs, t.deleteAll(context.WithoutCancel(ctx), now))...)
}

// deleteAll deletes objects without readers. The entries of those that the store has kept stay for
// Clear.
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

// deleteKeys deletes the objects of entries, calls gone with each entry of which the last object is
// deleted, perhaps from several goroutines at once, and returns the other entries.
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
