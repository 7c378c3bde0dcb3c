package enginetier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// pageSize is the multiple that engines round up to, and the alignment of direct I/O.
const pageSize = 4096

// Config is the configuration of a Tier.
type Config struct {
	Dir    *workdir.Dir    // the caller closes it, after the tier
	Engine ioengine.Engine // the caller closes it, after the tier
	Layout string          // a name of tiers.EngineLayouts
	Direct bool            // direct I/O, where the layout has it
	Model  string          // part of file names; any text
	Rank   int             // the client's; part of file names
	// Tensor is the tensor-parallel rank among World ranks; World 0 = no tensor parallelism.
	Tensor, World int
	// Bytes is the size of an object, > 0, and of a slot. Smaller objects take a whole slot.
	Bytes int64
	// Tokens is the number of tokens in an object, for Description; 0 = the engine's number.
	Tokens int
	// Depth is how many objects of one Create or Open move concurrently, 0 = 1. They must have the
	// same size.
	Depth int
	// Threads limits the requests in flight; nil: the engine's number of threads.
	Threads *Threads
	// Layers is the number of tensors of a token: some engines name each in a call.
	Layers int
	// Layerwise: objects are created and opened layer by layer, each layer of Bytes, where the
	// layout can (tiers.EngineLayout). An object without a layer is one file as usual.
	Layerwise bool
	// Latents: tokens are stored as latents, which are equal on all tensor-parallel ranks.
	Latents bool
	// Capacity is the size of files of slots, in bytes of objects.
	Capacity int64
	// Note receives the text of each system call, before it is made, unless the I/O engine makes the
	// call. It may be nil.
	Note func(string)
}

// Threads are the engine's threads that load and store; 0 = one for each request.
type Threads struct{ Loads, Stores int }

// who returns the rank in file names and the number of ranks. Without tensor parallelism that is the
// client's rank, and 1.
func (c *Config) who() (rank, world int) {
	if c.World > 0 {
		return c.Tensor, c.World
	}
	return c.Rank, 1
}

// Tier stores objects as an engine does.
type Tier struct {
	cfg      Config
	facts    tiers.EngineLayout
	calls    calls
	layout   layout
	direct   bool
	traits   tiers.Traits
	warnings []string
	path     string
	limits   *limits
	asking   chan struct{} // a semaphore of one: engines look up on one thread
	leaves   atomic.Bool   // the work directory removes the files, not the tier
	users    atomic.Int64  // the owner, open objects and requests in flight

	mu    sync.Mutex
	there map[tiers.ID]*stored
	held  int64 // bytes of objects
	used  int64 // bytes that the objects take in files
	ended bool
}

// stored is an object that is written or being written. The filesystem also knows which files exist,
// but an object that is being removed, or is not committed yet, must not be found.
type stored struct {
	o       tiers.Object
	visible bool
}

var _ tiers.Files = (*Tier)(nil)

// New makes the calls of the engine's start. If the filesystem refuses direct I/O, a layout whose
// engine continues with buffered I/O does so, with one of Warnings; for other layouts New returns a
// *tiers.UnsupportedError.
func New(ctx context.Context, cfg Config) (*Tier, error) {
	facts, known := tiers.EngineLayoutOf(cfg.Layout)
	switch {
	case !known:
		return nil, fmt.Errorf("make a storage tier: no engine has a layout %q", cfg.Layout)
	case cfg.Bytes < 1:
		return nil, fmt.Errorf("make %s with objects of %d bytes: the size must be positive",
			cfg.Layout, cfg.Bytes)
	}
	info, err := host.FilesystemOf(cfg.Dir.Path())
	if err != nil {
		return nil, err
	}
	t := &Tier{cfg: cfg, facts: facts, direct: cfg.Direct, asking: make(chan struct{}, 1),
		there: make(map[tiers.ID]*stored)}
	loads, stores := facts.Loads, facts.Stores
	if cfg.Threads != nil {
		loads, stores = cfg.Threads.Loads, cfg.Threads.Stores
	}
	t.limits = newLimits(cfg.Engine, loads, stores, facts.Lent)
	if t.calls.root, t.path, err = cfg.Dir.Tree(); err != nil {
		return nil, err
	}
	t.users.Store(1)
	t.calls.path, t.calls.engine, t.calls.note = t.path, cfg.Engine, cfg.Note
	if info.Memory {
		t.warn("the cache directory %s lies in %s: this measures memory, not storage", t.path,
			info.Type)
	}
	t.traits = tiers.Traits{Holds: true, Align: 1,
		Chunk: int(tiers.AlignUp(cfg.Bytes, pageSize))}
	if cfg.Layerwise {
		t.traits.Layers = cfg.Layers
	}
	if cfg.Depth > 1 {
		t.traits.Extent = int64(cfg.Depth) * cfg.Bytes
	}
	t.layout = newLayout(t)
	if err := t.layout.start(ctx); err != nil {
		return nil, fmt.Errorf("create files of %s: %w%s", cfg.Layout, err, tiers.Advice(err))
	}
	mode := "buffered"
	if t.direct {
		mode, t.traits.Align = "direct", pageSize
	} else {
		t.warn("%s writes through the page cache and flushes nothing: what it reads and writes is "+
			"the page cache's as far as memory lasts", cfg.Layout)
	}
	t.traits.Description = fmt.Sprintf("%s I/O on %s, %s: objects of %d tokens", mode, info.Type,
		cfg.Layout, cmp.Or(cfg.Tokens, facts.Tokens))
	if cfg.Layerwise {
		t.traits.Description += ", a file for each layer"
	}
	return t, nil
}

// Probe writes and reads one object before the run. The engine itself has no such step. A name that
// is too long, or direct I/O that opens and then fails, ends the run before it measures anything.
func (t *Tier) Probe(ctx context.Context) error {
	// Do not report the probe's calls: they are not part of the engine's call sequence.
	defer func(note func(string)) { t.calls.note = note }(t.calls.note)
	t.calls.note = nil
	page := tiers.Buffer{B: buffer.Aligned(make([]byte, 2*pageSize), pageSize, pageSize)}
	o := tiers.Object{Key: "probe", Gen: ^uint64(0), Layer: t.traits.Layers,
		Size: min(t.cfg.Bytes, pageSize)}
	move := func(to tiers.Submitter) error {
		done := make(chan error, 1)
		to.Submit(&tiers.IO{Buf: page, N: int(o.Size),
			Done: func(io *tiers.IO) { done <- io.Err }})
		return <-done
	}
	w, err := t.create(ctx, o)
	if err == nil {
		if err = move(w); err == nil {
			err = w.Commit(ctx)
		}
		err = errors.Join(err, w.Abort())
	}
	if err == nil {
		var r *handle
		if r, err = t.open(ctx, o); err == nil {
			err = errors.Join(move(r), r.Close())
		}
		err = errors.Join(err, t.Remove(ctx, o))
	}
	// Buffer and offset are page-aligned: EINVAL means that the filesystem has no direct I/O.
	if t.direct && errors.Is(err, unix.EINVAL) {
		need := "a filesystem that accepts it, or another -layout"
		if t.facts.Either {
			need = "a filesystem that accepts it, or -io buffered"
		}
		return &tiers.UnsupportedError{Feature: "direct I/O of layout " + t.cfg.Layout,
			Reason: err.Error(), Need: need}
	}
	return err
}

func (t *Tier) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Traits returns the tier's traits. Their Chunk makes an object one request, as in engines.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// Direct reports whether the tier does direct I/O. It may be false although Config.Direct is set.
func (t *Tier) Direct() bool { return t.direct }

// Warnings are facts that a reader of the results must know.
func (t *Tier) Warnings() []string { return slices.Concat(t.cfg.Dir.Warnings(), t.warnings) }

// Footprint returns the bytes of the objects, and the bytes that their files take in addition.
func (t *Tier) Footprint() (held, waste int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.used - t.held
}

// Space returns the filesystem's space.
func (t *Tier) Space(context.Context) (tiers.Space, error) {
	f, err := host.FilesystemOf(t.cfg.Dir.Path())
	return tiers.Space{Total: f.Total, Free: f.Free}, err
}

// LeaveFiles stops the removal of files: the work directory removes them.
func (t *Tier) LeaveFiles() { t.leaves.Store(true) }

// Close closes the engine's files, now or when the last request in flight has completed. The work
// directory removes them.
func (t *Tier) Close() error {
	t.mu.Lock()
	ended := t.ended
	t.ended = true
	t.mu.Unlock()
	if ended {
		return nil
	}
	return t.leave()
}

// leave ends one use of the layout. The last user closes it.
func (t *Tier) leave() error {
	if t.users.Add(-1) > 0 {
		return nil
	}
	return t.layout.close()
}

// Lookup looks objects up in the filesystem as the engine does, and returns how many objects exist
// before the first missing one. Engines look up on one thread: a request waits for the look-ups of
// other requests, and look-ups take longer with more files.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	if len(objs) == 0 {
		return 0, nil
	}
	select {
	case t.asking <- struct{}{}:
	case <-ctx.Done():
		return 0, tiers.Canceled(ctx, objs[0])
	}
	defer func() { <-t.asking }()
	// An engine looks up every layer: an object exists when all its layers exist.
	var asked []tiers.Object
	for _, o := range objs {
		asked = append(asked, t.parts(o)...)
	}
	if err := t.layout.lookUp(asked); err != nil {
		return 0, t.error("look up", objs[0], -1, err)
	}
	missing := func(o tiers.Object) bool { return !t.has(o) }
	for found < len(objs) && !slices.ContainsFunc(t.parts(objs[found]), missing) {
		found++
	}
	return found, nil
}

// parts returns the objects that are stored for an object: its layers, or itself.
func (t *Tier) parts(o tiers.Object) []tiers.Object {
	if o.Layer > 0 || t.has(o) {
		return []tiers.Object{o}
	}
	return o.InLayers(t.traits.Layers)
}

// Create begins to write the first object and those after it that may move concurrently with it.
func (t *Tier) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return t.group(objs, func(o tiers.Object) (*handle, error) { return t.create(ctx, o) })
}

func (t *Tier) create(ctx context.Context, o tiers.Object) (*handle, error) {
	e := &stored{o: o}
	t.mu.Lock()
	var err error
	switch {
	case t.ended:
		err = tiers.ErrClosed
	case t.there[o.ID()] != nil:
		err = tiers.ErrExists
	default:
		t.there[o.ID()] = e
		t.count(o, 1)
	}
	t.mu.Unlock()
	var f *file
	if err == nil {
		if f, err = t.layout.create(ctx, o); err != nil {
			t.forget(e)
		}
	}
	if err != nil {
		return nil, t.error("create", o, -1, err)
	}
	return t.handle(f, e, ioengine.Write), nil
}

// Open begins to read the objects that Create would begin to write.
func (t *Tier) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	return t.group(objs, func(o tiers.Object) (*handle, error) { return t.open(ctx, o) })
}

func (t *Tier) open(ctx context.Context, o tiers.Object) (*handle, error) {
	t.mu.Lock()
	e := t.there[o.ID()]
	t.mu.Unlock()
	err := tiers.ErrNotFound
	var f *file
	if t.has(o) {
		f, err = t.layout.open(ctx, e.o)
	}
	if err != nil {
		return nil, t.error("open", o, -1, err)
	}
	return t.handle(f, e, ioengine.Read), nil
}

// has reports whether an object can be opened.
func (t *Tier) has(o tiers.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.there[o.ID()]
	return e != nil && e.visible
}

// Remove deletes objects.
func (t *Tier) Remove(_ context.Context, objs ...tiers.Object) error {
	var all []tiers.Object
	for _, o := range objs {
		all = append(all, t.parts(o)...)
	}
	var errs []error
	for _, o := range all {
		t.mu.Lock()
		e := t.there[o.ID()]
		there := e != nil && e.visible
		if there {
			e.visible = false
		}
		t.mu.Unlock()
		err := tiers.ErrNotFound
		if there {
			err = t.layout.remove(e.o)
			t.forget(e)
		}
		if err != nil {
			errs = append(errs, t.error("remove", o, -1, err))
		}
	}
	return errors.Join(errs...)
}

// forget removes an object from the table. It can be written again.
func (t *Tier) forget(e *stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.there, e.o.ID())
	t.count(e.o, -1)
}

// count adds n = 1 or n = -1 objects to the tier's bytes. Callers hold mu.
func (t *Tier) count(o tiers.Object, n int64) {
	t.held += n * o.Size
	t.used += n * t.layout.takes(o)
}

// error returns the OpError of an operation on an object, with the path of its file if err has it.
func (t *Tier) error(op string, o tiers.Object, off int64, err error) error {
	path := t.path
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // joined errors may name several paths
		path, err = e.Path, e.Err
	}
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("%w: %w", tiers.ErrNotFound, err)
	}
	return &tiers.OpError{Op: op, Path: path, Key: o.Key, Offset: off, Err: err}
}

// request submits an operation under a limit and waits for it as ioengine.Await does. Back, if not
// nil, is called when the kernel no longer uses the operation's memory, perhaps long after request
// has returned.
func (t *Tier) request(ctx context.Context, l *limit, op *ioengine.Op, back func()) error {
	var passed time.Duration // not used: the operation moves none of a request's bytes
	t.users.Add(1)
	return ioengine.Await(ctx, func(op *ioengine.Op) { l.submit(op, &passed) }, op,
		func() {
			l.left(op.Ended)
			if back != nil {
				back()
			}
			_ = t.leave()
		})
}

// last submits the last operation of a file, and closes the file when the operation has completed,
// also after its caller has stopped waiting. Closed earlier, its descriptor's number could be
// another file's while the kernel still writes.
func (t *Tier) last(ctx context.Context, l *limit, path string, op *ioengine.Op, back func(),
) error {
	var users atomic.Int64
	users.Store(2)
	err := t.request(ctx, l, op, func() {
		back()
		if users.Add(-1) == 0 {
			go func() { _ = t.calls.close(op.FD, path) }() // which an engine's goroutine must not
		}
	})
	if users.Add(-1) == 0 {
		err = errors.Join(err, t.calls.close(op.FD, path))
	}
	return err
}

// handle is a writer or reader of an object.
//
// Its descriptor stays open while a request is in flight, also after its owner has closed it: the number may
// be another file's when the kernel uses it. So the owner and the requests are users, and the last user
// closes the object.
type handle struct {
	tiers.One
	t    *Tier
	at   int64 // offset of the object in its group
	f    *file
	e    *stored
	kind ioengine.Kind
	// padded: another object of the group follows, at the next page.
	padded bool

	over  atomic.Bool  // closed, committed or aborted
	users atomic.Int64 // the owner and the requests in flight
}

// handle returns a new handle with one user: its owner.
func (t *Tier) handle(f *file, e *stored, kind ioengine.Kind) *handle {
	h := &handle{t: t, f: f, e: e, kind: kind}
	h.users.Store(1)
	t.users.Add(1)
	return h
}

// enter adds a request to the object's users. It returns false if no user is left: then the object
// is closed, and a bucket's memory may have been released.
func (h *handle) enter() bool {
	for n := h.users.Load(); n > 0; n = h.users.Load() {
		if h.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// leave ends the use of the object by its owner or by a request. The last user closes it.
func (h *handle) leave() error {
	if h.users.Add(-1) > 0 {
		return nil
	}
	defer func() { _ = h.t.leave() }() // if this closes the tier, Close has returned already
	if h.kind == ioengine.Read {
		return h.t.layout.done(h.f)
	}
	defer h.t.forget(h.e)
	return h.t.layout.abandon(h.f)
}

// Submit makes one call for the whole object, as the engine does.
func (h *handle) Submit(io *tiers.IO) {
	r, ok := io.State.(*request)
	if !ok {
		r = &request{}
		r.op.Done = r.done
		io.State = r
	}
	r.h, r.io = h, io
	o, off := h.f.o, io.Off-h.at
	end := off + int64(io.N)
	if h.padded { // the bytes up to the next object are padding
		end = min(end, o.Size)
	}
	switch {
	case off < 0 || off > end || end > o.Size:
		io.End(h.t.error(h.kind.String(), o, off, fmt.Errorf("%d bytes at offset %d reach "+
			"beyond the entry's %d", io.N, off, o.Size)))
		return
	case h.over.Load() || !h.enter():
		io.End(h.t.error(h.kind.String(), o, off, tiers.ErrClosed))
		return
	}
	if h.f.mem != nil {
		if h.kind == ioengine.Read {
			copy(io.Buf.B[:end-off], h.f.mem[off:])
		} else {
			copy(h.f.mem[off:], io.Buf.B[:end-off])
		}
		io.Begun, io.Ended, io.Passed, io.Memory = 0, 0, 0, int(end-off)
		_ = h.leave() // as in done
		io.End(nil)
		return
	}
	n := tiers.AlignUp(int(end-off), h.t.traits.Align)
	// The other fields belong to the I/O engine, which may still use them for the last submission.
	r.op.Kind, r.op.FD, r.op.Off, r.op.N = h.kind, h.f.fd, h.f.at+off, n
	r.op.Buf = tiers.Buffer{B: io.Buf.B[:n], Slot: io.Buf.Slot, Node: io.Buf.Node}
	r.op.Vec, r.op.AtPosition = nil, false
	if whole := off == 0 && end == o.Size; whole && h.f.whole != nil {
		h.f.whole(&r.op)
	} else if whole {
		r.op.AtPosition = true
	}
	r.limit().submit(&r.op, &r.passed)
}

// request is the state of an IO. It is reused with the IO, so that only calls with several pieces of
// memory allocate.
type request struct {
	h  *handle
	io *tiers.IO
	op ioengine.Op

	passed time.Duration // when a thread became free for it, 0 = it did not wait
}

// limit returns the limit of the request's direction.
func (r *request) limit() *limit {
	if r.h.kind == ioengine.Read {
		return &r.h.t.limits.loads
	}
	return &r.h.t.limits.stores
}

// done completes the request. It releases the object first, so that the caller's Close can close it.
func (r *request) done(op *ioengine.Op) {
	h, io := r.h, r.io
	r.limit().left(op.Ended)
	io.Begun, io.Ended, io.Passed, io.Memory = op.Begun, op.Ended, r.passed, 0
	err := op.Err
	if err != nil {
		err = &fs.PathError{Path: h.t.path + "/" + h.f.path, Err: err}
		err = h.t.error(h.kind.String(), h.f.o, io.Off-h.at+int64(op.Moved), err)
	}
	_ = h.leave() // no caller is left for its error
	io.End(err)
}

// Commit makes the object what the engine calls stored.
func (h *handle) Commit(ctx context.Context) error {
	if !h.over.CompareAndSwap(false, true) {
		return h.t.error("commit", h.f.o, -1, tiers.ErrClosed)
	}
	if err := h.t.layout.commit(ctx, h.f); err != nil {
		return errors.Join(h.t.error("commit", h.f.o, -1, err), h.leave())
	}
	h.t.mu.Lock()
	h.e.visible = true // the writer's use becomes the tier's
	h.t.mu.Unlock()
	return h.t.leave()
}

// Committed returns how many bytes Commit wrote. In a bucket only the last object's commit writes,
// and it writes the whole bucket.
func (h *handle) Committed(n int64) int64 {
	if h.f.in != nil {
		return h.f.written
	}
	return n
}

// Abort removes the object.
func (h *handle) Abort() error { return h.Close() }

// Close ends the owner's use of the object.
func (h *handle) Close() error {
	if !h.over.CompareAndSwap(false, true) {
		return nil
	}
	return h.leave()
}
