package objecttier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/workdir"
)

// A folder is for objects that somebody may look for by their names: its marker keeps what a later
// run has to know of them, be it to read them or to remove exactly these.

// ours says whether a name below the prefix is one of this run's.
func (t *Tier) ours(name string) bool {
	if t.files != nil {
		return of(t.files, name)
	}
	return t.cfg.Names.Ours(name)
}

// theirs says whether it is one of an earlier run's, by its own marker.
func (o *owner) theirs(name string) bool {
	return slices.ContainsFunc(o.old.all(), func(n Names) bool { return n.Ours(name) }) ||
		slices.ContainsFunc(o.left, func(n workdir.Names) bool { return of(n, name) })
}

// of says whether a name is one that a folder gives, or that of a proof in it.
func of(n workdir.Names, name string) bool {
	dir, file, below := strings.Cut(name, "/")
	return proofName.MatchString(name) || below && n.Dir(dir) && n.File(dir, file)
}

// recall asks the folder what becomes of what an earlier run has left, before this run's marker
// takes the place of the other's. An error leaves everything as it is.
func (o *owner) recall() error {
	f := o.t.cfg.Folder
	if f == nil {
		return nil
	}
	o.mark.Contents = f.Contents
	if f.Recall == nil {
		return nil
	}
	// Of a start that was killed while it reclaimed there are several: only the last can be what
	// this run wants.
	for _, contents := range append(slices.Clone(o.old.ContentsBefore), o.old.Contents) {
		names, stay, err := f.Recall(contents)
		if err != nil {
			return fmt.Errorf("in %s: %w", o.t.URL(), err)
		}
		o.left, o.stays = append(o.left, names), stay
	}
	o.mark.ContentsBefore = o.old.ContentsBefore
	// What is to be removed stays known until it is gone: this start may be killed, too.
	if o.stays {
		o.t.files, o.mark.Contents = o.left[len(o.left)-1], o.old.Contents
	} else if len(o.old.Contents) > 0 {
		o.mark.ContentsBefore = append(slices.Clone(o.old.ContentsBefore), o.old.Contents)
	}
	return nil
}

// join takes part in the folder of another process of the run.
func (t *Tier) join(ctx context.Context) error {
	o := &t.owner
	_, text, err := o.read(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("taking part in %s: %w", t.URL(), err)
	case json.Unmarshal(text, &o.mark) != nil || o.mark.Nonce != t.cfg.Nonce:
		return fmt.Errorf("%s is another run's, or the store does not show what another process "+
			"of this run has just written there", t.URL())
	}
	if f := t.cfg.Folder; f.Recall != nil {
		names, stay, err := f.Recall(o.mark.Contents)
		if err != nil {
			return fmt.Errorf("in %s: %w", t.URL(), err)
		}
		if stay {
			t.files = names
		}
	}
	return nil
}

// Path is where the objects of a folder lie, for people.
func (t *Tier) Path() string { return t.URL() }

// Joined says that another process has opened the folder.
func (t *Tier) Joined() bool { return t.cfg.Join }

// Contents is what the marker keeps for a folder.
func (t *Tier) Contents() json.RawMessage {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	return t.owner.mark.Contents
}

// SetContents replaces it, for whoever has opened the folder.
func (t *Tier) SetContents(contents json.RawMessage) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanup)
	defer cancel()
	o := &t.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark.Contents = contents
	err := o.write(ctx, store.Condition{ETag: o.etag})
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNoKey) {
		o.taken.Store(true)
		return o.check()
	}
	return err
}

// Stay lets Clear leave the objects from now on, as Config.Keep does.
func (t *Tier) Stay() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg.Keep = true
}

// Linger lets Clear leave the marker, because other processes of the run may still write: what they
// leave the next start removes, which would else take it for somebody else's.
func (t *Tier) Linger() { t.lingers = true }

// Adopt makes an object of the tier of one that an earlier run left, under its name and of exactly
// its size: it can be read and removed from now on. ErrNotFound where there is none; one of another
// size is an error.
func (t *Tier) Adopt(ctx context.Context, o tiers.Object) error {
	info, err := t.client.Head(ctx, t.key(o))
	switch {
	case errors.Is(err, store.ErrNoKey):
		err = tiers.ErrNotFound
	case err == nil && info.Size != o.Size:
		err = fmt.Errorf("the object has %d bytes, it should have %d", info.Size, o.Size)
	}
	if err != nil {
		return t.fail("find", o, -1, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[o.ID()] != nil {
		return t.fail("find", o, -1, tiers.ErrExists)
	}
	t.entries[o.ID()] = &entry{state: present, size: o.Size}
	return nil
}
