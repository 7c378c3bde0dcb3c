package objecttier

import (
	"context"
	"errors"
	"strings"
	"sync"

	"kvbench/tiers/objecttier/store"
)

// Reclaimed is what was found of a dead run, and removed.
type Reclaimed struct {
	Objects, Bytes, Uploads int64
	PID                     int // of that run; 0 if unknown
	Host                    string
}

// rounds is how often what is left is looked for: a store may go on with what a dead client had
// begun.
const rounds = 3

// reclaim removes what a dead run has left, if there was one: by the names of its own marker. That
// of this run tells of them until they are gone.
func (t *Tier) reclaim(ctx context.Context) error {
	if t.owner.fresh || t.owner.stays {
		return nil
	}
	// The lock is the marker: as long as it is this run's nobody else writes objects of these
	// names.
	found, err := t.sweep(ctx, t.owner.theirs, true)
	if err == nil {
		t.owner.forget()
	}
	found.PID, found.Host = t.owner.old.PID, t.owner.old.Host
	t.reclaimed = found
	return err
}

// sweep removes all objects below the prefix that have exactly a name of some, and the uploads
// to such names: list, abort, list again, until a round finds nothing. Whatever else lies there
// stays as it is, and is noted.
func (t *Tier) sweep(ctx context.Context, of func(name string) bool, uploads bool) (
	found Reclaimed, err error) {
	for range rounds {
		n, err := t.round(ctx, of, uploads, &found)
		if n == 0 || err != nil {
			return found, err
		}
	}
	return found, nil
}

// listers are who has to be asked to see all objects: each endpoint where they are pinned by key.
func (t *Tier) listers() (all []*store.Client) {
	if !t.cfg.Store.Endpoints.Scattered() {
		return []*store.Client{t.client}
	}
	for i := range t.cfg.Store.Endpoints.All() {
		all = append(all, t.client.At(i))
	}
	return all
}

// round is one of them.
func (t *Tier) round(ctx context.Context, of func(name string) bool, uploads bool,
	found *Reclaimed) (n int, err error) {
	ours := func(key string) bool {
		name, below := strings.CutPrefix(key, t.base)
		return below && of(name)
	}
	for _, c := range t.listers() {
		i, err := t.roundAt(ctx, c, ours, uploads, found)
		if n += i; err != nil {
			return n, err
		}
	}
	return n, nil
}

// roundAt is a round at one of those who list. Uploads come first: one that its dead client's last
// request completes becomes an object, which the list behind it shows.
func (t *Tier) roundAt(ctx context.Context, c *store.Client, ours func(key string) bool,
	uploads bool, found *Reclaimed) (n int, err error) {
	if uploads {
		list, err := c.Uploads(ctx, t.base)
		if errors.Is(err, store.ErrNotServed) {
			t.warn("the store lists no unfinished uploads, so that those of a killed run cannot " +
				"be found: give the bucket a lifecycle rule that aborts them " +
				"(AbortIncompleteMultipartUpload)")
			list, err = nil, nil
		}
		if err != nil {
			return 0, err
		}
		for _, u := range list {
			if !ours(u.Key) {
				continue
			}
			if err := c.Abort(ctx, u.Key, u.ID); err != nil {
				return n, err
			}
			found.Uploads++
			n++
		}
	}
	// A page at a time: a killed run may have left more than fits a list.
	sizes := map[string]int64{}
	flush := func() error {
		keys := make([]string, 0, len(sizes))
		for key := range sizes {
			keys = append(keys, key)
		}
		var mu sync.Mutex
		err := c.DeleteAll(ctx, keys, func(key string) {
			mu.Lock()
			defer mu.Unlock()
			found.Objects++
			found.Bytes += sizes[key]
			n++
		})
		clear(sizes)
		return err
	}
	var failed error
	err = c.List(ctx, t.base, func(i store.Info) bool {
		if ours(i.Key) {
			sizes[i.Key] = i.Size
		} else if i.Key != t.owner.key() {
			t.owner.foreign.Store(true)
		}
		if len(sizes) < 4000 { // what four requests delete side by side
			return true
		}
		failed = flush()
		return failed == nil
	})
	return n, errors.Join(err, failed, flush())
}
