package filetier

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// Config says where objects are kept, and how.
type Config struct {
	Dir    *workdir.Dir    // stays the caller's to close, after the tier
	Engine ioengine.Engine // likewise
	Layout tiers.Layout
	// Direct bypasses the page cache: O_DIRECT, blocks preallocated, one fdatasync per object.
	// Without it objects are written through the page cache, flushed and dropped from it, and
	// dropped again before they are read.
	Direct bool
	// Extent is how many bytes the objects of one request span at most, in layouts that put them
	// next to each other.
	Extent   int64
	Capacity int64 // bytes that slots are preallocated for
	// Advice is the hint to the kernel for files in the page cache.
	Advice Advice
}

// Advice is the hint to the kernel for a file that is written and read through the page cache.
type Advice uint8

// The hints. Drop takes a file out of the page cache when it was flushed and before it is
// read, so that reads come from the device; the others leave in it what the kernel keeps.
const (
	AdviseDrop Advice = iota
	AdviseNothing
	AdviseSequential // readers read from front to back
)

// Tier keeps objects in files. Its index is in memory alone: what an earlier run left in the
// directory was reclaimed when that was opened, and is never read.
type Tier struct {
	dir      *workdir.Dir
	engine   ioengine.Engine
	policy   policy
	direct   bool
	advice   Advice
	unit     int64 // places are multiples of it
	traits   tiers.Traits
	warnings []string
	leaves   atomic.Bool // files are left to the directory

	mu      sync.Mutex
	entries map[tiers.ID]*entry
	current *file // takes the next objects; nil: a new one does
	made    uint64
	slots   slotHeap
	in      int   // descriptor for reading that stays open: of slots; -1: none
	held    int64 // bytes of objects
	used    int64 // bytes of their places
	ended   bool
}

var _ tiers.Tier = (*Tier)(nil)

// New tries out what the layout needs. Where the filesystem refuses direct I/O the tier is buffered
// and says so in Traits and Warnings; where it cannot free a part of a file, which some layouts
// need, that is a *tiers.UnsupportedError.
func New(cfg Config) (*Tier, error) {
	p, err := policyOf(cfg.Layout)
	if err != nil {
		return nil, err
	}
	t := &Tier{dir: cfg.Dir, engine: cfg.Engine, policy: p, advice: cfg.Advice, in: -1,
		entries: make(map[tiers.ID]*entry)}
	if err := t.probeDirect(cfg.Direct); err != nil {
		return nil, err
	}
	// Places are rounded up to what the layout can use again: a slot, or the blocks that a hole
	// frees. Where a file goes as a whole, its padding needs no account.
	align := int64(t.traits.Align)
	t.unit = 1
	switch {
	case p.slot > 0:
		t.policy.slot = tiers.AlignUp(p.slot, max(align, pageSize))
		t.unit = t.policy.slot
	case p.places > 1:
		t.unit = t.holeUnit(max(align, pageSize))
		if err := t.probeHoles(); err != nil {
			return nil, err
		}
	}
	if p.places != 1 {
		t.traits.Extent = cfg.Extent
	}
	t.describe()
	if p.slot > 0 {
		if err := t.makeSlots(cfg.Capacity); err != nil {
			return nil, fmt.Errorf("make a file of %d bytes for slots: %w", cfg.Capacity, err)
		}
	}
	return t, nil
}

// describe completes the traits with what the layout makes of them.
func (t *Tier) describe() {
	t.traits.Holds = true
	// Through the page cache bytes reach the device with the flush. A layout that never flushes
	// would not count them at all, so they count as they are written, and a warning says what that
	// is.
	t.traits.CountsAtCommit = !t.direct && t.policy.flush
	t.traits.Description += t.policy.describe()
	if !t.policy.flush && !t.direct {
		t.warn("%s are written without a flush: with buffered I/O that measures the page cache",
			t.policy.what)
	}
}

func (t *Tier) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Traits are fixed when the tier is made.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct reports whether the tier does direct I/O: the filesystem may have refused it.
func (t *Tier) Direct() bool { return t.direct }

// Warnings are things that a reader of the results must know: what was asked for and could not be
// had.
func (t *Tier) Warnings() []string { return slices.Concat(t.dir.Warnings(), t.warnings) }

// Footprint returns the bytes of the objects, and what their places take beyond that.
func (t *Tier) Footprint() (held, waste int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.used - t.held
}

// Space is that of the filesystem.
func (t *Tier) Space(context.Context) (tiers.Space, error) {
	f, err := host.FilesystemOf(t.dir.Path())
	return tiers.Space{Total: f.Total, Free: f.Free}, err
}

// LeaveFiles leaves the removal of files to the work directory from now on: those of objects that
// are removed or given up stay. Where a run has to end soon that takes too long, see [workdir.Dir].
func (t *Tier) LeaveFiles() { t.leaves.Store(true) }

// Close releases the file that takes objects; one that is still written goes with its writer. All
// files are the directory's to remove.
func (t *Tier) Close() error {
	t.mu.Lock()
	t.ended = true
	f := t.current
	if f != nil {
		t.close(f)
	}
	t.mu.Unlock()
	if f == nil {
		return nil
	}
	if t.in >= 0 {
		t.closeRead(f, t.in)
	}
	return t.seal(f)
}

// error describes a failure of an operation on an object, in a file of f.
func (t *Tier) error(op string, o tiers.Object, f *file, off int64, err error) error {
	path := t.dir.Path()
	if f != nil {
		path = t.path(f)
	}
	return &tiers.OpError{Op: op, Path: path, Key: o.Key, Offset: off, Err: err}
}

// path is where f lies.
func (t *Tier) path(f *file) string { return t.below(t.dir.Name(f.object(t.policy))) }

func (t *Tier) below(dir, name string) string { return t.dir.Path() + "/" + dir + "/" + name }
