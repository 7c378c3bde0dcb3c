package spread

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"kvbench/tiers"
)

// Files are the files of a storage tier in one directory.
type Files interface {
	tiers.Files
	Direct() bool
	Warnings() []string
	Footprint() (held, waste int64)
	LeaveFiles()
}

// Part is one directory.
type Part struct {
	Files
	Directory string // the name for messages
	Room      int64  // capacity in bytes of objects
}

// Config is the configuration of a Tier.
type Config struct {
	Parts []Part // at least one; all of the same kind
	// Unit is the allocation unit of objects in bytes, such as the size of a slot; 0 = 1.
	Unit int64
}

// Use is the current content of a directory.
type Use struct {
	Entries, Bytes int64
	// Elsewhere counts the entries that this directory took, since New, because their home directory
	// had no capacity.
	Elsewhere int64
}

// Tier is several directories as one tier. Its methods are safe for concurrent use.
type Tier struct {
	parts  []Part
	unit   int64
	traits tiers.Traits

	mu   sync.Mutex
	at   map[tiers.ID]*stored
	uses []use
}

// use is the account of a part.
type use struct {
	Use
	taken int64 // bytes of capacity in use
}

// stored is the directory of an object that is written or being written.
type stored struct {
	o    tiers.Object
	part int
	kept bool // committed
}

var _ Files = (*Tier)(nil)

// New returns a tier of the parts. Its Close closes them.
func New(cfg Config) *Tier {
	t := &Tier{parts: cfg.Parts, unit: max(1, cfg.Unit), at: make(map[tiers.ID]*stored),
		uses: make([]use, len(cfg.Parts))}
	t.traits = t.parts[0].Traits()
	descriptions := []string{t.traits.Description}
	for _, p := range t.parts[1:] {
		o := p.Traits()
		// Directories may differ in direct I/O. The largest alignment works for all. If bytes count at
		// the commit in one directory, they do in all.
		t.traits.Align = max(t.traits.Align, o.Align)
		t.traits.CountsAtCommit = t.traits.CountsAtCommit || o.CountsAtCommit
		if !slices.Contains(descriptions, o.Description) {
			descriptions = append(descriptions, o.Description)
		}
	}
	t.traits.Description = fmt.Sprintf("%s, in %d directories by hash",
		strings.Join(descriptions, " and "), len(t.parts))
	return t
}

// Home returns the index of a key's home directory among n. It is the same in every run. The lowest
// bits of FNV-1a depend only on the lowest bits of the key's letters, so MurmurHash3's finalizer mixes
// the hash.
func Home(key string, n int) int {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(key)) // never fails
	h := sum.Sum64()
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return int((h ^ h>>33) % uint64(n))
}

// Home returns the index of a key's home directory, and the number of directories.
func (t *Tier) Home(key string) (at, of int) {
	return Home(key, len(t.parts)), len(t.parts)
}

// Traits returns traits that are valid for all directories.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct reports whether all directories do direct I/O.
func (t *Tier) Direct() bool {
	return !slices.ContainsFunc(t.parts, func(p Part) bool { return !p.Direct() })
}

// Warnings returns the warnings of all directories. If only some directories have a warning, it names
// them.
func (t *Tier) Warnings() (list []string) {
	for _, p := range t.parts {
		for _, w := range p.Warnings() {
			if slices.ContainsFunc(t.parts, func(o Part) bool {
				return !slices.Contains(o.Warnings(), w)
			}) {
				w = p.Directory + ": " + w
			}
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	return list
}

// Footprint returns the sum of the directories' footprints.
func (t *Tier) Footprint() (held, waste int64) {
	for _, p := range t.parts {
		h, w := p.Footprint()
		held, waste = held+h, waste+w
	}
	return held, waste
}

// LeaveFiles stops the removal of files. The work directories remove them later.
func (t *Tier) LeaveFiles() {
	for _, p := range t.parts {
		p.LeaveFiles()
	}
}

// Space returns the sum over the directories, also if they share a filesystem.
func (t *Tier) Space(ctx context.Context) (all tiers.Space, err error) {
	for _, p := range t.parts {
		s, err := p.Space(ctx)
		if err != nil {
			return tiers.Space{}, err
		}
		all.Total, all.Free = all.Total+s.Total, all.Free+s.Free
	}
	return all, nil
}

// Close closes all parts.
func (t *Tier) Close() error {
	var errs []error
	for _, p := range t.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Uses returns the current content of each directory.
func (t *Tier) Uses() (list []Use) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range t.uses {
		list = append(list, u.Use)
	}
	return list
}

// Create begins to write the first object and the following objects, up to the first one for another
// directory.
func (t *Tier) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	run, part := t.place(objs)
	w, err := t.parts[part].Create(ctx, objs[:len(run)]...)
	took := 0
	if err == nil {
		took = w.Len()
	}
	t.forget(run[took:]...)
	if err != nil {
		return nil, err
	}
	return &writer{Writer: w, t: t, part: part, run: run[:took]}, nil
}

// place records the directory of the first objects that go to the same directory. It does not record an
// object that already exists: the part refuses it.
func (t *Tier) place(objs []tiers.Object) (run []*stored, part int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, o := range objs {
		s := t.at[o.ID()]
		known := s != nil
		home := Home(o.Key, len(t.parts))
		if !known {
			s = &stored{o: o, part: t.fits(o, home)}
		}
		switch {
		case i == 0:
			part = s.part
		case known || s.part != part:
			return run, part
		}
		if known {
			return []*stored{{o: o, part: part}}, part
		}
		t.at[o.ID()] = s
		t.count(s, 1)
		if s.part != home && entry(o) {
			t.uses[s.part].Elsewhere++
		}
		run = append(run, s)
	}
	return run, part
}

// fits returns the directory for an object: its home, or the next directory with enough capacity. If
// none has enough, it returns the directory with the most capacity left: the cache limits the sum over
// all directories. Callers hold mu.
func (t *Tier) fits(o tiers.Object, home int) (part int) {
	left := func(i int) int64 { return t.parts[i].Room - t.uses[i].taken }
	part = home
	for i := range t.parts {
		next := (home + i) % len(t.parts)
		if left(next) >= t.room(o) {
			return next
		}
		if left(next) > left(part) {
			part = next
		}
	}
	return part
}

// room returns the capacity that an object takes in its directory.
func (t *Tier) room(o tiers.Object) int64 { return tiers.AlignUp(o.Size, t.unit) }

// keep records that objects are committed.
func (t *Tier) keep(list ...*stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range list {
		s.kept = true
	}
}

// forget removes aborted or removed objects from the accounts. It ignores an object without a record: a
// refused writer must not remove the record of the existing object.
func (t *Tier) forget(list ...*stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range list {
		if t.at[s.o.ID()] != s {
			continue
		}
		delete(t.at, s.o.ID())
		t.count(s, -1)
		// An object that was never committed does not count in Elsewhere.
		if !s.kept && s.part != Home(s.o.Key, len(t.parts)) && entry(s.o) {
			t.uses[s.part].Elsewhere--
		}
	}
}

// count adds an object to the account of its directory, or removes it. Callers hold mu.
func (t *Tier) count(s *stored, sign int64) {
	u := &t.uses[s.part]
	u.Bytes += sign * s.o.Size
	u.taken += sign * t.room(s.o)
	if entry(s.o) {
		u.Entries += sign
	}
}

// entry reports whether an object counts as an entry. Of the layers of an entry only the first does.
func entry(o tiers.Object) bool { return o.Layer <= 1 }

// where returns the directory of the first object, and how many of the first objects are in it. For an
// unknown object it returns the home directory.
func (t *Tier) where(objs []tiers.Object) (part, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := func(o tiers.Object) int {
		if s := t.at[o.ID()]; s != nil {
			return s.part
		}
		return Home(o.Key, len(t.parts))
	}
	part, n = of(objs[0]), 1
	for n < len(objs) && of(objs[n]) == part {
		n++
	}
	return part, n
}

// Open begins to read the first object and the following objects, up to the first one in another
// directory.
func (t *Tier) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	part, n := t.where(objs)
	r, err := t.parts[part].Open(ctx, objs[:n]...)
	if err != nil {
		return nil, err
	}
	return &reader{Reader: r, part: part}, nil
}

// Remove deletes objects in their directories.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	var errs []error
	for _, o := range objs {
		part, _ := t.where([]tiers.Object{o})
		errs = append(errs, t.parts[part].Remove(ctx, o))
		t.mu.Lock()
		s := t.at[o.ID()]
		gone := s != nil && s.kept // before the commit, the writer removes the record
		t.mu.Unlock()
		if gone {
			t.forget(s)
		}
	}
	return errors.Join(errs...)
}

// Lookup looks up objects in their directories, one directory after the other, up to the first missing
// object. All parts must implement tiers.Looker.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	for found < len(objs) {
		part, n := t.where(objs[found:])
		looker, ok := t.parts[part].Files.(tiers.Looker)
		if !ok {
			return found, errors.ErrUnsupported
		}
		there, err := looker.Lookup(ctx, objs[found:found+n]...)
		found += there
		if err != nil || there < n {
			return found, err
		}
	}
	return found, nil
}

// reader is a reader of one part.
type reader struct {
	tiers.Reader
	part int
}

// Part returns the number of the directory: see [tiers.PartOf].
func (r *reader) Part() int { return r.part }

// writer is a writer of one part. Its objects count in the accounts until they are aborted.
type writer struct {
	tiers.Writer
	t    *Tier
	part int
	run  []*stored
	over bool // committed
}

// Part returns the number of the directory: see [tiers.PartOf].
func (w *writer) Part() int { return w.part }

// Committed returns the part's count of bytes.
func (w *writer) Committed(n int64) int64 { return tiers.Committed(w.Writer, n) }

// Commit commits the objects. After an error they no longer count.
func (w *writer) Commit(ctx context.Context) error {
	err := w.Writer.Commit(ctx)
	switch {
	case err == nil:
		w.t.keep(w.run...)
		w.over = true
	case !w.over:
		w.t.forget(w.run...)
	}
	return err
}

// Abort aborts the objects and removes them from the accounts, unless they were committed.
func (w *writer) Abort() error {
	err := w.Writer.Abort()
	if !w.over {
		w.t.forget(w.run...)
	}
	return err
}
