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

// Files is a storage tier in one directory.
type Files interface {
	tiers.Tier
	Direct() bool
	Warnings() []string
	Footprint() (held, waste int64)
	LeaveFiles()
}

// Lookup asks a tier for objects, if it can look them up. It returns how many of the first ones
// there are.
func Lookup(ctx context.Context, f Files, objs ...tiers.Object) (int, error) {
	l, ok := f.(interface {
		Lookup(ctx context.Context, objs ...tiers.Object) (int, error)
	})
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return l.Lookup(ctx, objs...)
}

// Part is one of the directories.
type Part struct {
	Files
	Directory string // for people
	Room      int64  // bytes of objects that it may take at most
}

// Config is what a Tier is made of.
type Config struct {
	Parts []Part // at least one; of one kind
	// Unit is what an object takes whole ones of, in bytes: that of slots; 0 = 1.
	Unit int64
}

// Use is what a directory has.
type Use struct {
	Entries, Bytes int64
	// Elsewhere are the entries that it has taken since the tier was made because their own
	// directory had no room.
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

// use is that of a part.
type use struct {
	Use
	taken int64 // of its room
}

// stored is where an object lies, or is being written.
type stored struct {
	o    tiers.Object
	part int
	kept bool // committed
}

var _ Files = (*Tier)(nil)

// New makes a tier of its parts, which it closes from now on.
func New(cfg Config) *Tier {
	t := &Tier{parts: cfg.Parts, unit: max(1, cfg.Unit), at: make(map[tiers.ID]*stored),
		uses: make([]use, len(cfg.Parts))}
	t.traits = t.parts[0].Traits()
	descriptions := []string{t.traits.Description}
	for _, p := range t.parts[1:] {
		o := p.Traits()
		// One directory may refuse direct I/O that another has: what suits the stricter one suits
		// both, and bytes that count late count for all.
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

// Home is the directory of a key, of n: the same in every run. The sum is FNV-1a, whose lowest bits
// are no more than those of the key's letters, so that the finalizer of MurmurHash3 mixes it.
func Home(key string, n int) int {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(key)) // never fails
	h := sum.Sum64()
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return int((h ^ h>>33) % uint64(n))
}

// Home is the directory of a key, and how many there are.
func (t *Tier) Home(key string) (at, of int) {
	return Home(key, len(t.parts)), len(t.parts)
}

// Traits are what suits all directories.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct says whether all directories do direct I/O.
func (t *Tier) Direct() bool {
	return !slices.ContainsFunc(t.parts, func(p Part) bool { return !p.Direct() })
}

// Warnings are those of all directories; what only some of them say has their names.
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

// Footprint is that of all of them together.
func (t *Tier) Footprint() (held, waste int64) {
	for _, p := range t.parts {
		h, w := p.Footprint()
		held, waste = held+h, waste+w
	}
	return held, waste
}

// LeaveFiles leaves the removal of files to the work directories from now on.
func (t *Tier) LeaveFiles() {
	for _, p := range t.parts {
		p.LeaveFiles()
	}
}

// Space is that of all of them together, also where they lie on one filesystem.
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

// Uses are what each directory has now.
func (t *Tier) Uses() (list []Use) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range t.uses {
		list = append(list, u.Use)
	}
	return list
}

// Create begins objects in the directory of the first: of those behind it the ones that belong
// there, too, until one does not.
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

// place notes where the first of some objects are going to lie. One that is known already is not
// noted again, and is the part's to refuse.
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
		u := &t.uses[s.part]
		u.Entries++
		u.Bytes += o.Size
		u.taken += t.room(o)
		if s.part != home {
			u.Elsewhere++
		}
		run = append(run, s)
	}
	return run, part
}

// fits is the directory for an object: its own, or the next one that has room. When none has, as
// when all are full but for a part of an object each, it is the one with most of it left: the cache
// sees to it that all of them together are not too full. Callers hold mu.
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

// room is what an object takes of that of its directory.
func (t *Tier) room(o tiers.Object) int64 { return tiers.AlignUp(o.Size, t.unit) }

// keep notes that objects are committed.
func (t *Tier) keep(list ...*stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range list {
		s.kept = true
	}
}

// forget counts objects no more that did not come to be, or are gone. Only what is noted
// counts: a writer that was refused because its object is there leaves that alone.
func (t *Tier) forget(list ...*stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range list {
		if t.at[s.o.ID()] != s {
			continue
		}
		delete(t.at, s.o.ID())
		u := &t.uses[s.part]
		// What never came to be was not taken by another directory than its own.
		if !s.kept && s.part != Home(s.o.Key, len(t.parts)) {
			u.Elsewhere--
		}
		u.Entries--
		u.Bytes -= s.o.Size
		u.taken -= t.room(s.o)
	}
}

// where is the directory of the first of some objects, and how many of them follow each other
// there. Of an object that is nowhere it is the one where it would be.
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

// Open begins reading the objects that lie in the directory of the first, until one does not.
func (t *Tier) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	part, n := t.where(objs)
	r, err := t.parts[part].Open(ctx, objs[:n]...)
	if err != nil {
		return nil, err
	}
	return &reader{Reader: r, part: part}, nil
}

// Remove deletes objects, wherever they lie.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	var errs []error
	for _, o := range objs {
		part, _ := t.where([]tiers.Object{o})
		errs = append(errs, t.parts[part].Remove(ctx, o))
		t.mu.Lock()
		s := t.at[o.ID()]
		gone := s != nil && s.kept // one that is still being written is its writer's
		t.mu.Unlock()
		if gone {
			t.forget(s)
		}
	}
	return errors.Join(errs...)
}

// Lookup asks each directory for the objects that belong there, one directory after the other, as
// far as the first object that is not there. It is for parts that have it.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	for found < len(objs) {
		part, n := t.where(objs[found:])
		there, err := Lookup(ctx, t.parts[part].Files, objs[found:found+n]...)
		found += there
		if err != nil || there < n {
			return found, err
		}
	}
	return found, nil
}

// reader is that of a part.
type reader struct {
	tiers.Reader
	part int
}

// Part is the number of the directory: see [tiers.PartOf].
func (r *reader) Part() int { return r.part }

// writer is that of a part, whose objects are in the tier until they are given up.
type writer struct {
	tiers.Writer
	t    *Tier
	part int
	run  []*stored
	over bool // committed
}

// Part is the number of the directory: see [tiers.PartOf].
func (w *writer) Part() int { return w.part }

// Committed is the part's.
func (w *writer) Committed(n int64) int64 { return tiers.Committed(w.Writer, n) }

// Commit keeps the objects counted, unless it fails.
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

// Abort takes the objects out of the accounts, unless they were committed.
func (w *writer) Abort() error {
	err := w.Writer.Abort()
	if !w.over {
		w.t.forget(w.run...)
	}
	return err
}
