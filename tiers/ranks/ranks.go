package ranks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/spread"
)

// Config is what a Tier is made of.
type Config struct {
	Ranks []spread.Files // by number, at least two alike
	// Bytes are those of an object, all ranks' together: requests are as large.
	Bytes int64
	// Depth is how many objects of a rank are in flight together, 0 = 1.
	Depth int
	// Part is how many bytes of every object each has, also of one that is opened with fewer than
	// it was made with: then those have none of it that lie behind. 0: they share it evenly.
	Part int64
	// InTurn: they do nothing at the same moment, but one after the other.
	InTurn bool
}

// Tier is the tiers of all ranks as one. Of an object each rank has a part of the bytes, the first
// rank the first.
type Tier struct {
	ranks  []spread.Files
	traits tiers.Traits
	fixed  int64 // Config.Part
	each   func(n int, do func(rank int) error) error

	mu     sync.Mutex
	making map[tiers.ID]bool // objects that are being created: of all ranks or of none
}

var _ spread.Files = (*Tier)(nil)

// pageSize is what requests are whole multiples of.
const pageSize = 4096

// New makes a tier of its ranks, which it closes from now on.
func New(cfg Config) *Tier {
	t := &Tier{ranks: cfg.Ranks, traits: cfg.Ranks[0].Traits(), making: make(map[tiers.ID]bool),
		fixed: cfg.Part, each: together}
	if cfg.InTurn {
		t.each = inTurn
	}
	t.traits.Chunk = int(tiers.AlignUp(cfg.Bytes, pageSize))
	if t.traits.Extent = 0; cfg.Depth > 1 {
		t.traits.Extent = int64(cfg.Depth) * cfg.Bytes
	}
	t.traits.Description += fmt.Sprintf(", of %d ranks", len(cfg.Ranks))
	return t
}

// part is how many bytes of an object a rank has; the last ones may have less, or none, where they
// cannot be divided into whole ones of what requests need.
func (t *Tier) part(size int64) int64 {
	if t.fixed > 0 {
		return t.fixed
	}
	n := int64(len(t.ranks))
	return tiers.AlignUp((size+n-1)/n, int64(t.traits.Align))
}

// of is what a rank has of an object: Size 0 is nothing.
func (t *Tier) of(rank int, o tiers.Object) tiers.Object {
	part := t.part(o.Size)
	o.Size = max(0, min(part, o.Size-int64(rank)*part))
	return o
}

// allOf is what it has of several.
func (t *Tier) allOf(rank int, objs []tiers.Object) (list []tiers.Object) {
	for _, o := range objs {
		if o = t.of(rank, o); o.Size > 0 {
			list = append(list, o)
		}
	}
	return list
}

// inTurn lets n ranks do something one after the other, also behind one that fails.
func inTurn(n int, do func(rank int) error) (err error) {
	for i := range n {
		if failed := do(i); err == nil {
			err = failed
		}
	}
	return err
}

// together lets n ranks do something at the same moment, and returns the error of the first that
// failed.
func together(n int, do func(rank int) error) error {
	errs := make([]error, n)
	guarded := func(i int) {
		defer func() {
			if v := recover(); v != nil {
				errs[i] = &tiers.PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		errs[i] = do(i)
	}
	// A rank is a process of its own: that one waits must not let another one wait.
	var wait sync.WaitGroup
	for i := 1; i < n; i++ {
		wait.Go(func() { guarded(i) })
	}
	guarded(0)
	wait.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// Traits are fixed when the tier is made.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct says whether the ranks do direct I/O.
func (t *Tier) Direct() bool { return t.ranks[0].Direct() }

// Warnings are those of the ranks, each once.
func (t *Tier) Warnings() (list []string) {
	for _, r := range t.ranks {
		for _, w := range r.Warnings() {
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	return list
}

// Footprint is that of all ranks.
func (t *Tier) Footprint() (held, waste int64) {
	for _, r := range t.ranks {
		h, w := r.Footprint()
		held, waste = held+h, waste+w
	}
	return held, waste
}

// Space is that of the filesystem, which all have.
func (t *Tier) Space(ctx context.Context) (tiers.Space, error) { return t.ranks[0].Space(ctx) }

// LeaveFiles leaves the removal of files to the work directory from now on.
func (t *Tier) LeaveFiles() {
	for _, r := range t.ranks {
		r.LeaveFiles()
	}
}

// Close ends all ranks.
func (t *Tier) Close() error {
	var errs []error
	for _, r := range t.ranks {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Lookup asks for the objects of every rank, and returns how many of the first ones there are of
// all of them. It is for ranks that have it.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	there := make([]int, len(t.ranks))
	err = t.each(len(t.ranks), func(i int) (err error) {
		own := t.allOf(i, objs)
		if there[i], err = spread.Lookup(ctx, t.ranks[i], own...); there[i] == len(own) {
			there[i] = len(objs) // of the others it has nothing
		}
		return err
	})
	return slices.Min(there), err
}

// Create begins the objects of every rank.
func (t *Tier) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	objs, err := t.claim(objs)
	if err != nil {
		return nil, err
	}
	defer t.release(objs)
	f, err := begin(t, objs, func(r spread.Files, objs []tiers.Object) (tiers.Writer, error) {
		return r.Create(ctx, objs...)
	}, tiers.Writer.Abort)
	if err != nil {
		return nil, err
	}
	return &writer{f}, nil
}

// claim is the first of some objects that no other call is creating: of two that create the same
// object one would have some ranks' and the other one the others'.
func (t *Tier) claim(objs []tiers.Object) ([]tiers.Object, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, o := range objs {
		if !t.making[o.ID()] {
			t.making[o.ID()] = true
			continue
		}
		if i == 0 {
			return nil, t.error("create", o, -1, tiers.ErrExists)
		}
		return objs[:i], nil
	}
	return objs, nil
}

// release says that they are known to all ranks, or to none.
func (t *Tier) release(objs []tiers.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range objs {
		delete(t.making, o.ID())
	}
}

// Open begins reading the objects of every rank.
func (t *Tier) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	f, err := begin(t, objs, func(r spread.Files, objs []tiers.Object) (tiers.Reader, error) {
		return r.Open(ctx, objs...)
	}, tiers.Reader.Close)
	if err != nil {
		return nil, err
	}
	return &reader{f}, nil
}

// Remove deletes the objects of every rank.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	var errs []error
	for _, o := range objs {
		errs = append(errs, t.each(len(t.ranks), func(i int) error {
			own := t.of(i, o)
			if own.Size == 0 {
				return nil
			}
			return t.ranks[i].Remove(ctx, own)
		}))
	}
	return errors.Join(errs...)
}

// error describes a failure that is no rank's own, and names no file therefore.
func (t *Tier) error(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.traits.Description, Key: o.Key, Offset: off, Err: err}
}
