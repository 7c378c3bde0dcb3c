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

// Config is the configuration of a Tier.
type Config struct {
	Dir    *workdir.Dir    // the caller closes it, after the tier
	Engine ioengine.Engine // the caller closes it, after the tier
	Layout tiers.Layout
	// Direct: O_DIRECT, preallocated blocks, one fdatasync per object. Without it objects are
	// written through the page cache, flushed and dropped from it, and dropped again before they are
	// read.
	Direct bool
	// Extent is how many bytes adjacent objects of one request span at most.
	Extent   int64
	Capacity int64 // bytes for which slots are preallocated
	// Advice is the hint to the kernel for files in the page cache.
	Advice Advice
}

// Advice is the hint to the kernel for a file that is written and read through the page cache.
type Advice uint8

// The hints. AdviseDrop drops a file from the page cache after its flush and before reads, so that
// reads come from the device. The others leave the page cache to the kernel.
const (
	AdviseDrop Advice = iota
	AdviseNothing
	AdviseSequential // readers read from front to back
)

// Tier stores objects in files. Its index is only in memory: files of an earlier run were reclaimed
// when the directory was opened, and are never read (except by Adopt).
type Tier struct {
	dir      *workdir.Dir
	engine   ioengine.Engine
	policy   policy
	direct   bool
	advice   Advice
	unit     int64 // sizes of places are multiples of it
	traits   tiers.Traits
	warnings []string
	leaves   atomic.Bool // the work directory removes the files, not the tier

	mu      sync.Mutex
	entries map[tiers.ID]*entry
	current *file // takes the next objects; nil: they begin a new file
	made    uint64
	slots   slotHeap
	in      int   // read descriptor of the file of slots, which stays open; -1: none
	held    int64 // bytes of objects
	used    int64 // bytes of their places
	ended   bool
}

var _ tiers.Files = (*Tier)(nil)

// New probes what the layout needs. If the filesystem refuses direct I/O the tier uses buffered I/O,
// and Traits and Warnings report it. If the layout has to free a part of a file and the filesystem
// cannot, New returns a *tiers.UnsupportedError.
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
	// Places are rounded up to the unit of reuse: a slot, or the blocks that a hole frees. A file that
	// is removed as a whole needs no rounding.
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

// describe adds the layout's part of the traits.
func (t *Tier) describe() {
	t.traits.Holds = true
	// With buffered I/O bytes reach the device with the flush. A layout without a flush counts them
	// when they are written, and has a warning.
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

// Traits returns the tier's traits.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct reports whether the tier does direct I/O: the filesystem may have refused it.
func (t *Tier) Direct() bool { return t.direct }

// Warnings are facts that a reader of the results must know, such as a refused setting.
func (t *Tier) Warnings() []string { return slices.Concat(t.dir.Warnings(), t.warnings) }

// Footprint returns the bytes of the objects, and the bytes that their places take in addition.
func (t *Tier) Footprint() (held, waste int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.used - t.held
}

// Space returns the filesystem's space.
func (t *Tier) Space(context.Context) (tiers.Space, error) {
	f, err := host.FilesystemOf(t.dir.Path())
	return tiers.Space{Total: f.Total, Free: f.Free}, err
}

// LeaveFiles stops the removal of files: the files of removed and aborted objects stay, and the work
// directory removes them. A run that has to end soon has no time to remove them, see [workdir.Dir].
func (t *Tier) LeaveFiles() { t.leaves.Store(true) }

// Close closes the file that takes objects. A file that is still being written is closed with its
// writer. The work directory removes all files.
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

// error returns the OpError of an operation on an object in the file f, which may be nil.
func (t *Tier) error(op string, o tiers.Object, f *file, off int64, err error) error {
	path := t.dir.Path()
	if f != nil {
		path = t.path(f)
	}
	return &tiers.OpError{Op: op, Path: path, Key: o.Key, Offset: off, Err: err}
}

// path returns the path of f.
func (t *Tier) path(f *file) string { return t.below(t.dir.Name(f.object(t.policy))) }

func (t *Tier) below(dir, name string) string { return t.dir.Path() + "/" + dir + "/" + name }
