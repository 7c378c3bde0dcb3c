package filetier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// pageSize is the size to which engines round up, and the smallest alignment of places in files.
const pageSize = 4096

// Config is the configuration of a Tier.
type Config struct {
	Dir    *workdir.Dir    // the caller closes it, after the tier
	Engine ioengine.Engine // the caller closes it, after the tier
	Layout tiers.Layout
	// Direct uses O_DIRECT, if the layout supports it. The suite's own layouts then preallocate blocks
	// and flush with one fdatasync. Without Direct they write through the page cache, flush, drop
	// objects from it, and drop them again before a read.
	Direct bool
	// Extent is the largest number of bytes of adjacent objects in one request, in the suite's own
	// layouts.
	Extent   int64
	Capacity int64 // bytes for which slots are preallocated
	Part     int   // number of the directory among several, see tiers.PartOf
	// Advice is the hint to the kernel for cached files of the suite's own layouts.
	Advice Advice

	Imitation
}

// Imitation is the part of the configuration for the layouts of engines.
type Imitation struct {
	Model string // part of file names; any text
	Rank  int    // of the client; part of file names
	// Tensor is the tensor-parallel rank among World ranks; World 0 = no tensor parallelism.
	Tensor, World int
	// Tokens is the number of tokens in an object, for Description; 0 = the engine's number.
	Tokens int
	// Depth is the number of objects of one Create or Open that move concurrently, 0 = 1. They must
	// have the same size.
	Depth   int
	Threads Threads // limits the requests in flight
	// Layers is the number of layers of the model.
	Layers int
	// Layerwise stores each layer of an object as a file of Layout.Bytes, if the layout can
	// (tiers.LayoutSpec). An object without a layer is one file.
	Layerwise bool
	// Latents: tokens are stored as latents, which are equal on all tensor-parallel ranks.
	Latents bool
	// SidePools: layers with windows, states or an indexer have pools of their own. SGLang looks their pages up
	// otherwise.
	SidePools bool
	// Note receives the text of each system call, before it is made, unless the I/O engine makes the
	// call. It may be nil.
	Note func(string)
}

// Threads are the numbers of the imitated engine's threads for loads and stores; 0 = one per request.
type Threads struct{ Loads, Stores int }

// ranks returns the rank in file names and the number of ranks. Without tensor parallelism that is the
// client's rank, and 1.
func (c *Imitation) ranks() (rank, world int) {
	if c.World > 0 {
		return c.Tensor, c.World
	}
	return c.Rank, 1
}

// Advice is the hint to the kernel for a file in the page cache.
type Advice uint8

// The hints. AdviseDrop drops a file from the page cache after its flush and before reads, so that
// reads come from the device. The other hints leave the page cache to the kernel.
const (
	AdviseDrop Advice = iota
	AdviseNothing
	AdviseSequential // readers read from front to back
)

// Tier stores objects in files. Its index is only in memory. It reads no files of an earlier run,
// except by Adopt.
type Tier struct {
	cfg        Config
	spec       tiers.LayoutSpec
	layout     layout
	calls      calls
	direct     bool // files are opened for direct I/O
	cached     bool // the filesystem does direct I/O through the page cache
	traits     tiers.Traits
	warnings   []string
	limits     *limits
	lookups    chan struct{} // a semaphore of one: engines look up on one thread
	leaves     atomic.Bool   // the work directory removes the files, instead of the tier
	users      users         // the owner, open extents and requests in flight
	dropsCache bool          // requests drop their pages from the page cache, see ioengine.Op.Leaves
	adjacent   int64         // largest bytes of a span of several objects; 0: one object per span

	mu      sync.Mutex
	entries map[tiers.ID]*entry
	held    int64 // bytes of objects
	used    int64 // bytes of their places
	ended   bool
}

var _ tiers.Files = (*Tier)(nil)

// New makes the calls of the layout's start. If the filesystem refuses direct I/O, the suite's own
// layouts and some engines continue with buffered I/O, which Traits and Warnings report; for other
// layouts Probe fails. If the filesystem lacks anything else that the layout needs, New returns a
// *tiers.UnsupportedError.
func New(ctx context.Context, cfg Config) (*Tier, error) {
	t := &Tier{cfg: cfg, direct: cfg.Direct, lookups: make(chan struct{}, 1),
		entries: make(map[tiers.ID]*entry)}
	t.calls = calls{dir: cfg.Dir, root: -1, path: cfg.Dir.Path(), engine: cfg.Engine}
	t.traits = tiers.Traits{Holds: true, Align: 1}
	t.users.end = func() error { return t.layout.close() }
	t.users.n.Store(1)
	var err error
	if t.layout, err = newLayout(t); err != nil {
		return nil, err
	}
	t.limits = newLimits(cfg.Engine, cfg.Threads, t.spec.Shared)
	info, err := host.FilesystemOf(cfg.Dir.Path())
	if err != nil {
		return nil, err
	}
	if info.Memory {
		t.warn("the cache directory %s lies in %s: this measures memory, not storage",
			cfg.Dir.Path(), info.Type)
	}
	why, err := t.whyCached(info)
	if err != nil {
		return nil, fmt.Errorf("try direct I/O: %w", err)
	}
	t.calls.note = cfg.Note // an engine makes none of the calls so far
	if t.imitates() {
		err = t.imitate()
	} else {
		err = t.probeDirect(ctx, info.Type)
	}
	if err != nil {
		return nil, err
	}
	if err := t.layout.start(ctx); err != nil {
		if _, ok := errors.AsType[*tiers.UnsupportedError](err); ok {
			return nil, err
		}
		return nil, fmt.Errorf("create files of layout %s: %w%s", t.spec.Name, err,
			tiers.Advice(err))
	}
	if t.direct && why != "" {
		t.cached = true
		t.warn("direct I/O in %s is accepted and not done: %s", t.calls.path, why)
	}
	t.describe(info.Type)
	return t, nil
}

// imitates reports whether the layout is an engine's.
func (t *Tier) imitates() bool { return t.spec.Tokens > 0 }

// imitate prepares the layout of an engine: its directory, and the chunk size, so that a request moves
// one object.
func (t *Tier) imitate() (err error) {
	cfg, bytes := &t.cfg, t.cfg.Layout.Bytes
	if bytes < 1 {
		return fmt.Errorf("make %s with objects of %d bytes: the size must be positive", t.spec.Name,
			bytes)
	}
	t.traits.Chunk = int(tiers.AlignUp(bytes, pageSize))
	if cfg.Layerwise {
		t.traits.Layers = cfg.Layers
	}
	if cfg.Depth > 1 {
		t.traits.Extent = int64(cfg.Depth) * bytes
	}
	t.calls.root, t.calls.path, err = cfg.Dir.Tree()
	return err
}

// describe completes the traits and warnings.
func (t *Tier) describe(filesystem string) {
	mode := "buffered"
	if t.Direct() {
		mode = "direct"
	}
	d := &t.traits.Description
	*d = mode + " I/O on " + filesystem + *d
	if !t.imitates() {
		return
	}
	*d += fmt.Sprintf(", %s: objects of %d tokens", t.spec.Name,
		cmp.Or(t.cfg.Tokens, t.spec.Tokens))
	if t.cfg.Layerwise {
		*d += ", a file for each layer"
	}
	if t.direct {
		t.traits.Align = pageSize
	} else {
		t.warn("%s writes through the page cache and flushes nothing: what it reads and writes is "+
			"the page cache's as far as memory lasts", t.spec.Name)
	}
}

func (t *Tier) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Traits returns the tier's traits. In an engine's layout Chunk makes an object one request.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct reports whether the tier's writes bypass the page cache. It may be false although Config.Direct is set.
func (t *Tier) Direct() bool { return t.direct && !t.cached }

// Cached reports whether the filesystem accepts direct I/O and does it through the page cache.
func (t *Tier) Cached() bool { return t.cached }

// Warnings returns facts that a reader of the results must know, such as a setting that was refused.
func (t *Tier) Warnings() []string { return slices.Concat(t.cfg.Dir.Warnings(), t.warnings) }

// Footprint returns the bytes of the objects, and the additional bytes of their places.
func (t *Tier) Footprint() (held, waste int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.used - t.held
}

// Entries returns the number of objects that are written or being written. Of the layers of an object
// only the first counts.
func (t *Tier) Entries() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.entries {
		if id.Layer <= 1 {
			n++
		}
	}
	return n
}

// Has reports whether an object, or its first layer, is written or being written.
func (t *Tier) Has(o tiers.Object) bool {
	id := o.ID()
	if t.traits.Layers > 1 {
		id.Layer = max(1, id.Layer)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[id] != nil
}

// LeaveFiles stops the removal of files: the files of removed and aborted objects stay, and the work
// directory removes them. A run that has to end soon has no time for that: see [workdir.Dir].
func (t *Tier) LeaveFiles() { t.leaves.Store(true) }

// Close closes the layout's files, now or when the last extent has ended. The work directory removes
// them.
func (t *Tier) Close() error {
	t.mu.Lock()
	ended := t.ended
	t.ended = true
	t.mu.Unlock()
	if ended {
		return nil
	}
	return t.users.leave()
}

// unlink removes a file of objects, unless the run ends and the work directory removes it.
func (t *Tier) unlink(path string) error {
	if t.leaves.Load() {
		return nil
	}
	return t.calls.unlink(path)
}

// error returns the OpError of an operation on an object. A failed call has its own name and path.
func (t *Tier) error(op string, o tiers.Object, off int64, err error) error {
	path := t.calls.path
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // joined errors may name several paths
		op, path, err = e.Op, e.Path, e.Err
	}
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("%w: %w", tiers.ErrNotFound, err)
	}
	return &tiers.OpError{Op: op, Path: path, Key: o.Key, Offset: off, Err: err}
}
