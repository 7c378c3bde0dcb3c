package objecttier

import (
	"context"
	"errors"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/store"
)

// Remove deletes objects, up to a thousand per request if the store supports this. It deletes an object
// that is being read when the last read ends. The end of ctx stops no deletion, because the cache already
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
// several goroutines. If the store fails to delete an object, Clear finds it again.
func (t *Tier) deleteKeys(ctx context.Context, objs []tiers.Object, deleted func(bytes int64)) error {
	keys, sizes := make([]string, len(objs)), make(map[string]int64, len(objs))
	for i, o := range objs {
		keys[i] = t.key(o)
		sizes[keys[i]] = o.Size
	}
	err := t.client.DeleteAll(ctx, keys, func(key string) { deleted(sizes[key]) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range objs {
		delete(t.entries, o.ID())
	}
	return err
}

// late: within this time after a failed write, its object or a part of it may still appear in the store.
const late = 500 * time.Millisecond

// Clear removes all objects and uploads of the run, unless the objects are kept. It calls deleted with
// the bytes of each deleted object, possibly from several goroutines. No transfer may be in flight. If
// ctx ends, the remaining objects stay in the bucket.
func (t *Tier) Clear(ctx context.Context, deleted func(bytes int64)) error {
	t.mu.Lock()
	// The process that began a run removes all of it, also the objects of those that joined.
	keep := t.keep || t.cfg.Join || !t.mark.mine()
	all := make([]tiers.Object, 0, len(t.entries))
	for id, e := range t.entries {
		all = append(all, tiers.Object{Key: id.Key, Gen: id.Gen, Size: e.size})
	}
	t.mu.Unlock()
	err := t.undoLate(ctx)
	switch {
	case keep && (t.cfg.Folder != nil || err != nil):
		return err
	case keep:
		return t.writeManifest(ctx)
	}
	if t.cfg.Folder != nil { // first, because a partly removed run cannot be read
		err = errors.Join(err, t.client.Delete(ctx, t.base+manifestName))
	}
	_ = t.deleteKeys(ctx, all, deleted) // the sweep repeats deletions that have failed
	return errors.Join(err, t.sweep(ctx))
}

// undoLate repeats the aborts of failed uploads. Before that it waits until late parts must have arrived.
func (t *Tier) undoLate(ctx context.Context) (err error) {
	if t.cut > 0 {
		_ = t.clock.Sleep(ctx, late-(t.clock.Now()-t.cut)) // the requests see the end of ctx
	}
	for _, u := range t.aborted {
		err = errors.Join(err, t.client.Abort(ctx, u.Key, u.ID))
	}
	return err
}

// rounds limits the rounds of sweep. During a round the store may still execute requests of the run.
const rounds = 3

// sweep removes all objects and uploads below the run's prefix, until a round finds none. Nothing else
// is below that prefix. It aborts uploads first: an upload that completes meanwhile appears in the list
// of objects.
func (t *Tier) sweep(ctx context.Context) error {
	for range rounds {
		var uploads []store.Upload
		var err error
		if t.multipart() {
			uploads, err = t.client.Uploads(ctx, t.base)
		}
		for _, u := range uploads {
			err = errors.Join(err, t.client.Abort(ctx, u.Key, u.ID))
		}
		var keys []string
		err = errors.Join(err, t.client.List(ctx, t.base, false, func(key string) bool {
			keys = append(keys, key)
			return len(keys) < 1<<20 // the next round continues
		}))
		err = errors.Join(err, t.client.DeleteAll(ctx, keys, func(string) {}))
		if err != nil || len(keys)+len(uploads) == 0 {
			return err
		}
	}
	return nil
}
