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

// Config is the configuration of a Tier.
type Config struct {
	Ranks []spread.Files // by rank, at least two of the same kind
	// Bytes is the size of an object, all ranks together, and of a request.
	Bytes int64
	// Depth is how many objects of a rank are in flight together, 0 = 1.
	Depth int
	// Part is how many bytes of every object each rank has. An object that is opened with fewer bytes
	// uses only the first ranks. 0: the ranks share an object evenly.
	Part int64
	// InTurn: the ranks work one after the other, and not concurrently.
	InTurn bool
}

// Tier combines the tiers of all ranks. Each rank has a part of an object's bytes, in the order of the
// ranks.
type Tier struct {
	ranks  []spread.Files
	traits tiers.Traits
	fixed  int64 // Config.Part
	each   func(n int, do func(rank int) error) error

	mu     sync.Mutex
	making map[tiers.ID]bool // objects whose creation is in progress
}

var _ spread.Files = (*Tier)(nil)

// pageSize is the multiple to which request sizes are rounded up.
const pageSize = 4096

// New returns a tier of the ranks, which it closes.
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

// part returns how many bytes of an object a rank has, a multiple of Traits.Align. The last ranks may
// have fewer, or none.
func (t *Tier) part(size int64) int64 {
	if t.fixed > 0 {
		return t.fixed
	}
	n := int64(len(t.ranks))
	return tiers.AlignUp((size+n-1)/n, int64(t.traits.Align))
}

// of returns a rank's part of an object; its Size may be 0.
func (t *Tier) of(rank int, o tiers.Object) tiers.Object {
	part := t.part(o.Size)
	o.Size = max(0, min(part, o.Size-int64(rank)*part))
	return o
}

// allOf returns a rank's parts of several objects, without empty ones.
func (t *Tier) allOf(rank int, objs []tiers.Object) (list []tiers.Object) {
	for _, o := range objs {
		if o = t.of(rank, o); o.Size > 0 {
			list = append(list, o)
		}
	}
	return list
}

// inTurn calls do for n ranks, one after the other. It continues after an error and returns the first
// one.
func inTurn(n int, do func(rank int) error) (err error) {
	for i := range n {
		if failed := do(i); err == nil {
			err = failed
		}
	}
	return err
}

// together calls do for n ranks concurrently, and returns the error of the lowest rank that failed.
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
	// Ranks are separate processes: a wait of one must not delay another.
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

// Traits returns the tier's traits.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct reports whether the ranks do direct I/O.
func (t *Tier) Direct() bool { return t.ranks[0].Direct() }

// Warnings returns the warnings of the ranks without duplicates.
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

// Footprint returns the sum of all ranks' footprints.
func (t *Tier) Footprint() (held, waste int64) {
	for _, r := range t.ranks {
		h, w := r.Footprint()
		held, waste = held+h, waste+w
	}
	return held, waste
}

// Space returns the space of the filesystem, which all ranks share.
func (t *Tier) Space(ctx context.Context) (tiers.Space, error) { return t.ranks[0].Space(ctx) }

// LeaveFiles stops the removal of files: the work directory removes them.
func (t *Tier) LeaveFiles() {
	for _, r := range t.ranks {
		r.LeaveFiles()
	}
}

// Close closes all ranks.
func (t *Tier) Close() error {
	var errs []error
	for _, r := range t.ranks {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Lookup looks up the objects of every rank, and returns how many objects all ranks have before the
// first missing one. All ranks must have a Lookup.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	there := make([]int, len(t.ranks))
	err = t.each(len(t.ranks), func(i int) (err error) {
		own := t.allOf(i, objs)
		if there[i], err = t.ranks[i].(tiers.Looker).Lookup(ctx, own...); there[i] == len(own) {
			there[i] = len(objs) // the rank has no bytes of the others
		}
		return err
	})
	return slices.Min(there), err
}

// Create begins writing the objects of every rank.
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

// claim marks the first objects that no other call is creating, and returns them. Without it, two calls
// that create the same object could each succeed on some of the ranks.
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

// release ends the claim: all ranks know the objects, or none does.
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

// error returns the OpError of a failure that concerns no single rank. It names no file.
func (t *Tier) error(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.traits.Description, Key: o.Key, Offset: off, Err: err}
}
