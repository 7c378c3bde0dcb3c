package objecttier

import (
	"context"
	"errors"

	"kvbench/tiers"
)

// Remove deletes objects one by one, or many with up to a thousand per request. An object that is being
// read is deleted when its last read ends. The end of ctx stops no deletion, because the cache already
// counts the space as free.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	var errs []error
	var now []tiers.Object
	t.mu.Lock()
	for _, o := range objs {
		e := t.entries[o.ID()]
		if e == nil || e.state != present { // also the second of two equal objects
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

// deleteAll deletes objects without readers.
func (t *Tier) deleteAll(ctx context.Context, objs []tiers.Object) error {
	if len(objs) == 0 {
		return nil
	}
	if err := t.deleteKeys(ctx, objs, func(int64) {}); err != nil {
		return t.fail("remove", objs[0], -1, err)
	}
	return nil
}

// deleteKeys deletes objects. It calls deleted with the bytes of each deleted object, possibly from
// several goroutines. It marks the other objects as stuck; Clear retries them.
func (t *Tier) deleteKeys(ctx context.Context, objs []tiers.Object, deleted func(bytes int64)) error {
	keys := make([]string, len(objs))
	left := make(map[string]tiers.Object, len(objs))
	for i, o := range objs {
		keys[i] = t.key(o)
		left[keys[i]] = o
	}
	err := t.client.DeleteAll(ctx, keys, func(key string) {
		t.mu.Lock()
		o := left[key]
		delete(left, key)
		delete(t.entries, o.ID())
		t.mu.Unlock()
		deleted(o.Size)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range left {
		if e := t.entries[o.ID()]; e != nil {
			e.state = stuck
		}
	}
	return err
}
