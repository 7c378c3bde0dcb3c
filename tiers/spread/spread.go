package spread

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
)

// Part is one directory. Its readers and writers return its number, filetier.Config.Part, to
// [tiers.PartOf].
type Part struct {
	*filetier.Tier
	Room int64 // capacity in bytes of objects
}

// Use is the current content of a directory.
type Use struct {
	Entries, Bytes int64
	// Elsewhere counts the entries that this directory took, since New, because their home directory
	// had no capacity.
	Elsewhere int64
}

// Tier is several directories as one tier. Its methods are safe for concurrent use. The directories know
// which objects they have.
type Tier struct {
	parts  []Part
	traits tiers.Traits

	mu        sync.Mutex
	creating  []int64 // bytes of objects that each directory is about to count
	elsewhere []int64 // see Use
}

var _ tiers.Files = (*Tier)(nil)

// New returns a tier of at least one part, all of the same kind. Its Close closes them.
func New(parts ...Part) *Tier {
	t := &Tier{parts: parts, creating: make([]int64, len(parts)), elsewhere: make([]int64, len(parts))}
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
func (t *Tier) Home(key string) (index, count int) {
	return Home(key, len(t.parts)), len(t.parts)
}

// Traits returns traits that are valid for all directories.
func (t *Tier) Traits() tiers.Traits { return t.traits }

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
	for i, p := range t.parts {
		held, _ := p.Footprint()
		list = append(list, Use{p.Entries(), held, t.elsewhere[i]})
	}
	return list
}

// Create begins to write the first object and the following objects, up to the first one for another
// directory.
func (t *Tier) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	part, n, bytes := t.place(objs)
	w, err := t.parts[part].Create(ctx, objs[:n]...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.creating[part] -= bytes
	if err == nil && part != t.home(objs[0]) {
		for _, o := range objs[:w.Len()] {
			if o.Layer <= 1 { // of the layers of an entry only the first counts
				t.elsewhere[part]++
			}
		}
	}
	return w, err
}

// place returns the directory for the first n objects, and reserves their bytes there. An object that
// exists already goes to its directory, which refuses it.
func (t *Tier) place(objs []tiers.Object) (part, n int, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	part = t.where(objs[0])
	if !t.parts[part].Has(objs[0]) {
		part = t.fits(objs[0])
	}
	home := t.home(objs[0])
	for ; n < len(objs) && (n == 0 || t.home(objs[n]) == home && t.fits(objs[n]) == part); n++ {
		t.creating[part] += objs[n].Size
		bytes += objs[n].Size
	}
	return part, n, bytes
}

// fits returns the directory for an object: its home, or the next directory with enough capacity. If
// none has enough, it returns the directory with the most capacity left: the cache limits the sum over
// all directories. Callers hold mu.
func (t *Tier) fits(o tiers.Object) (part int) {
	home, most := t.home(o), int64(math.MinInt64)
	for i := range t.parts {
		next := (home + i) % len(t.parts)
		held, waste := t.parts[next].Footprint()
		left := t.parts[next].Room - held - waste - t.creating[next]
		if left >= o.Size {
			return next
		}
		if left > most {
			part, most = next, left
		}
	}
	return part
}

// home returns the home directory of an object.
func (t *Tier) home(o tiers.Object) int { return Home(o.Key, len(t.parts)) }

// where returns the directory of an object, or the home directory of an unknown object.
func (t *Tier) where(o tiers.Object) int {
	home := t.home(o)
	for i := range t.parts {
		if at := (home + i) % len(t.parts); t.parts[at].Has(o) {
			return at
		}
	}
	return home
}

// together returns the directory of the first object, and how many of the first objects are in it.
func (t *Tier) together(objs []tiers.Object) (part, n int) {
	part, n = t.where(objs[0]), 1
	for n < len(objs) && t.where(objs[n]) == part {
		n++
	}
	return part, n
}

// Open begins to read the first object and the following objects, up to the first one in another
// directory.
func (t *Tier) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	part, n := t.together(objs)
	return t.parts[part].Open(ctx, objs[:n]...)
}

// Remove deletes objects in their directories.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	var errs []error
	for _, o := range objs {
		errs = append(errs, t.parts[t.where(o)].Remove(ctx, o))
	}
	return errors.Join(errs...)
}

// Lookup looks up objects in their directories, one directory after the other, up to the first missing
// object.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	for found < len(objs) {
		part, n := t.together(objs[found:])
		there, err := t.parts[part].Lookup(ctx, objs[found:found+n]...)
		found += there
		if err != nil || there < n {
			return found, err
		}
	}
	return found, nil
}
