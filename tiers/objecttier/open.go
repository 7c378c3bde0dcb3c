package objecttier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/store"
)

// Open begins a run in a bucket. It checks the store. If the run reads the objects of an earlier run,
// Open finds that run; otherwise it warns of the objects of other runs.
func Open(ctx context.Context, cfg Config) (*Tier, error) {
	client, err := store.New(cfg.Store)
	if err != nil {
		return nil, err
	}
	t := &Tier{cfg: cfg, client: client, clock: cfg.Store.Clock, entries: map[tiers.ID]*entry{},
		keep: cfg.Keep}
	if cfg.Requests > 0 {
		t.turns = make(turns, cfg.Requests)
	}
	name := fmt.Sprintf("rank_%d", cfg.Rank)
	if cfg.Folder != nil {
		t.files, name = cfg.Folder.Files, cfg.Folder.Name
	}
	t.parent = strings.TrimPrefix(cfg.Prefix+"/"+name+"/", "/")
	run := fmt.Sprintf("%016x", rand.Uint64())
	t.own = t.parent + run + "/"
	t.base, t.mark = t.own, newManifest(cfg, run)
	if err := t.begin(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return t, nil
}

func (t *Tier) begin(ctx context.Context) error {
	runs, err := t.runs(ctx)
	if err != nil {
		return err
	}
	reads, err := t.choose(ctx, runs)
	if err != nil || t.cfg.Join {
		return err
	}
	if !reads {
		t.warnOfLeftovers(ctx, runs)
	}
	begun := t.clock.Now()
	if err := t.check(ctx); err != nil {
		return err
	}
	t.checked = t.clock.Now() - begun
	if t.keep && !reads {
		t.warn("the objects stay in %s", t.Run())
	}
	if t.cfg.Folder != nil && !reads {
		return t.writeManifest(ctx)
	}
	return nil
}

// runs returns the names of the runs with objects below the parent prefix.
func (t *Tier) runs(ctx context.Context) (names []string, err error) {
	err = t.client.List(ctx, t.parent, true, func(key string) bool {
		name, folder := strings.CutSuffix(strings.TrimPrefix(key, t.parent), "/")
		if folder && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return true
	})
	return names, err
}

// warnOfLeftovers warns of objects and uploads of other runs, which this run does not touch.
func (t *Tier) warnOfLeftovers(ctx context.Context, runs []string) {
	at := t.Endpoints()[0].URL
	if n := len(runs); n > 0 {
		t.warn("%s holds objects of other runs (%d: %s), which were killed, have kept their "+
			"objects, or still run; to remove one: aws s3 rm --recursive --endpoint-url %s "+
			"%s/%s/", t.URL(), n, some(runs), at, t.URL(), runs[0])
	}
	if !t.multipart() {
		return
	}
	if uploads, _ := t.client.Uploads(ctx, t.parent); len(uploads) > 0 {
		t.warn("%s holds unfinished uploads of other runs (%d), which take space until they are "+
			"aborted, as by a lifecycle rule (AbortIncompleteMultipartUpload); to abort one: "+
			"aws s3api abort-multipart-upload --endpoint-url %s --bucket %s --key '%s' "+
			"--upload-id '%s'",
			t.URL(), len(uploads), at, t.cfg.Store.Bucket, uploads[0].Key, uploads[0].ID)
	}
}

// some lists the first names.
func some(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// late is the time after a failed write within which its object, or a part of it, may still appear.
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

// undoLate repeats the aborts of failed uploads. It first waits until late parts must have arrived.
func (t *Tier) undoLate(ctx context.Context) (err error) {
	if t.cut > 0 {
		_ = t.clock.Sleep(ctx, late-(t.clock.Now()-t.cut)) // the requests see the end of ctx
	}
	for _, u := range t.aborted {
		err = errors.Join(err, t.client.Abort(ctx, u.Key, u.ID))
	}
	return err
}

// rounds limits the rounds of sweep. The store may still execute requests of the run during a round.
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
