package kvbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/content"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/memtier"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/ranks"
	"kvbench/tiers/sim"
	"kvbench/tiers/spread"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// openStorage opens the storage side: buffers, tiers and the cache over them. If it fails,
// closeStorage closes what it has opened.
func (t *trial) openStorage(ctx context.Context) (err error) {
	cfg := &t.cfg.Storage
	if cfg.StorageBytes > 0 && cfg.Levels == nil && cfg.Bucket == nil {
		if err := t.openEngine(); err != nil {
			return err
		}
	}
	if !cfg.Simulated {
		want, got := cfg.Buffers()
		if t.engine != nil { // which reads and writes files
			t.nodes = host.StorageNodes(cfg.dirs()...)
		}
		if t.Pool, err = t.NewPool(got, cfg.Chunk); err != nil {
			return fmt.Errorf("making %d I/O buffers of %d bytes: %w", got, cfg.Chunk, err)
		}
		t.onClose(t.Pool.Close)
		t.info.IO.Pool = result.Pool{Buffers: got, BufferBytes: cfg.Chunk,
			HugePages: t.Pool.HugePages(), NUMA: t.Pool.Placed(), Covers: got >= want}
	}
	t.Content = content.New(cfg.Nonce, cfg.Rank)
	t.Transfer = &transfer.Transfer{
		Pool: t.Pool, Content: t.Content, Chunk: cfg.Chunk, Depth: cfg.Depth,
		Verify: cfg.Verify, FlushOnly: cfg.FlushOnly, Clock: t.Clock,
	}
	if t.Levels = cfg.Levels; t.Levels == nil {
		if err := t.openTiers(ctx); err != nil {
			return err
		}
	}
	t.Cache, err = cache.New(cache.Config{Levels: t.Levels, Transfer: t.Transfer,
		Policy: cfg.Policy.Policy, Tails: cfg.Engine.Tails, MaxWriters: cfg.MaxWriters,
		Clock: t.Clock, Observer: (*observer)(t)})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, t.Cache.Close)
	t.Reference, err = newReference(&cfg.Policy, t.Levels, t.Clock)
	return err
}

func (t *trial) openTiers(ctx context.Context) error {
	cfg := &t.cfg.Storage
	add := func(kind tiers.Kind, tier tiers.Tier, capacity int64) {
		t.onClose(tier.Close)
		t.Levels = append(t.Levels, cache.Level{Kind: kind, Tier: tier, Capacity: capacity})
	}
	if n := cfg.GPUBytes; n > 0 {
		link, err := sim.NewLink(cfg.GPUBandwidth, t.Clock)
		if err != nil {
			return err
		}
		add(tiers.GPU, link, n)
	}
	if n := cfg.CPUBytes; n > 0 {
		memory, err := memtier.New(n, t.nodes...) // near the devices that entries are moved to and from
		if err != nil {
			return fmt.Errorf("making a cpu tier of %d bytes: %w", n, err)
		}
		memory.Prefault()
		add(tiers.CPU, memory, n)
	}
	if cfg.StorageBytes <= 0 {
		return nil
	}
	if cfg.Bucket != nil {
		return t.openBucket(ctx)
	}
	var err error
	if t.files, err = t.openRoots(ctx); err != nil {
		return err
	}
	add(tiers.Storage, t.files, cfg.StorageBytes)
	var paths []string
	for _, d := range t.dirs {
		paths = append(paths, d.path)
	}
	t.info.IO.CacheDir = strings.Join(paths, ",")
	t.info.IO.Mode = "buffered" // the mode that the filesystem granted, which may differ from -io
	if t.files.Direct() {
		t.info.IO.Mode = "direct"
	}
	t.warn(t.files.Warnings()...)
	return nil
}

// openRoots opens the directories of the storage tier, and the tier in them.
func (t *trial) openRoots(ctx context.Context) (fileTier, error) {
	cfg := t.cfg.Storage
	roots := cfg.roots()
	n := int64(len(roots))
	all := spread.Config{Unit: 1}
	if y, _ := cfg.Layout.Spec(); y.Blocks && cfg.Layout.Bytes > 0 {
		all.Unit = cfg.Layout.Bytes // each object takes a slot, however small it is
	}
	for _, r := range roots {
		where := ""
		if n > 1 {
			where = ", in " + r.Dir
			// A slot file gets its part at the start; other files grow.
			cfg.StorageBytes = (t.cfg.Storage.StorageBytes+n-1)/n + all.Unit
		}
		dir, err := t.openDir(ctx, workdir.Options{CacheDir: r.Dir, Rank: cfg.Rank,
			Nonce: t.info.Nonce, Keep: cfg.KeepFiles, Removal: cfg.Removal, Folder: cfg.Folder,
			Call: t.engine.Call})
		if err != nil {
			return nil, err
		}
		t.closers = append(t.closers, dir.Remove)
		t.dirs = append(t.dirs, &directory{path: dir.Path()})
		if old := dir.Reclaimed(); old.Files > 0 {
			t.warn(fmt.Sprintf("reclaimed %d files (%.2f GiB) of an earlier run that was killed "+
				"or kept its files%s", old.Files, float64(old.Bytes)/(1<<30), where))
		}
		files, err := openFiles(ctx, &cfg, dir, t.engine)
		if err != nil {
			return nil, err
		}
		if n == 1 {
			t.Dir = dir
			return files, nil
		}
		t.onClose(files.Close) // also where the next one cannot be opened
		all.Parts = append(all.Parts, spread.Part{Files: files, Directory: r.Dir, Room: r.Room})
		t.info.IO.Roots = append(t.info.IO.Roots,
			result.Root{Directory: r.Dir, RoomBytes: r.Room})
	}
	t.Rec.Parts(len(all.Parts))
	return spread.New(all), nil
}

// openEngine makes the engine that reads and writes the files.
func (t *trial) openEngine() error {
	cfg, io := &t.cfg.Storage, &t.info.IO
	threads, _ := host.Procs(runtime.NumCPU())
	use := ioengine.Use{Direct: cfg.Direct, Chained: cfg.Chained, Threads: threads}
	for _, dir := range cfg.dirs() { // opening reports a directory that does not answer
		fs, _ := host.FilesystemOf(dir)
		use.Inline = use.Inline || host.FUSE(fs.Type)
	}
	e, choice, err := ioengine.Open(cmp.Or(cfg.IOEngine, ioengine.Auto), use, t.Clock.Now)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.engine, io.Engine = e, choice.Name
	t.mu.Unlock()
	io.EngineAbout, io.EngineReason = choice.About, choice.Reason
	// Closed last, after the memory that is registered with it. Close waits for late answers of the
	// storage as long as the caller waits for the trial's end.
	t.closers = append(t.closers, e.Close)
	return nil
}

// NewPool allocates I/O buffers for the run's files: on the NUMA nodes of their devices, and
// registered with the engine if that saves work per request. Where the system does not allow it,
// each request pins its pages.
func (e *Env) NewPool(buffers, size int) (*buffer.Pool, error) {
	t := e.trial
	p, err := buffer.NewPool(buffers, size, t.nodes...)
	if err == nil && t.engine != nil {
		if err := p.Register(t.engine); err != nil {
			t.info.IO.EngineReason = err.Error()
			if errors.Is(err, syscall.ENOMEM) {
				t.info.IO.EngineReason += ": see ulimit -l"
			}
		}
	}
	return p, err
}

// BufferBound is the largest size in bytes of the buffers of one use.
func (e *Env) BufferBound() int64 { return e.trial.cfg.Storage.Bound() }

// openBucket opens the run's prefix in a bucket, and registers its removal.
func (t *trial) openBucket(ctx context.Context) error {
	cfg := &t.cfg.Storage
	c := cfg.Bucket.Config
	set, err := endpoint.NewSet(cfg.Bucket.URLs, cfg.Bucket.Balance, cfg.Rank, t.Clock.Now)
	if err != nil {
		return err
	}
	c.Rank, c.Nonce, c.Keep, c.Depth = cfg.Rank, t.info.Nonce, cfg.KeepFiles, cfg.Depth
	if c.Folder = cfg.Folder; c.Folder != nil {
		c.Names = objecttier.Names{Format: objecttier.Files}
	}
	c.Store.Endpoints, c.Store.Clock = set, t.Clock
	t.objects = record.NewObjects(t.Rec, len(cfg.Bucket.URLs), t.Clock.Now)
	c.Store.Observer = t.objects
	// Pauses between attempts are random: clients of one run should not retry at the same time.
	c.Store.Random = rand.Float64
	t.stage("looking at the store")
	tier, err := t.openShared(ctx, c)
	if err != nil {
		return fmt.Errorf("opening the storage tier: %w", err)
	}
	t.bucket = tier
	t.objects.Store = record.DescribeStore(c, cfg.Bucket.Balance, cfg.Bucket.From,
		map[bool]string{false: "none", true: "head"}[cfg.Bucket.Lookup])
	place := cfg.Removal.Add(tier.Run(), func() (workdir.Count, error) {
		return workdir.Count{Amount: tier.Amount()}, nil
	})
	t.closers = append(t.closers, func(ctx context.Context) error {
		return errors.Join(t.emptyBucket(ctx, place), tier.Close())
	})
	t.Levels = append(t.Levels, cache.Level{Kind: tiers.Storage, Tier: tier,
		Capacity: cfg.StorageBytes})
	t.info.IO.CacheDir, t.info.IO.Mode = tier.URL(), result.IOObjects
	return nil
}

// openShared opens the tier; in a shared folder rank 0 opens it first, and the other clients join.
func (t *trial) openShared(ctx context.Context, c objecttier.Config) (tier *objecttier.Tier,
	err error) {
	if c.Folder == nil || t.Group.Size() == 1 {
		return objecttier.Open(ctx, c)
	}
	if t.Group.Rank() > 0 {
		if err := t.Group.Barrier(ctx); err != nil {
			return nil, err
		}
		c.Join = true
		return objecttier.Open(ctx, c)
	}
	if tier, err = objecttier.Open(ctx, c); err != nil {
		return nil, err
	}
	if err = t.Group.Barrier(ctx); err != nil {
		ctx := context.WithoutCancel(ctx)
		return nil, errors.Join(err, tier.Clear(ctx, func(int64) {}), tier.Close())
	}
	return tier, nil
}

// emptyBucket removes the run's objects, unless they are to be kept.
func (t *trial) emptyBucket(ctx context.Context, place *workdir.Place) error {
	if !t.cfg.Storage.KeepFiles {
		place.Counted(t.bucket.Amount())
	}
	err := t.bucket.Clear(ctx, func(bytes int64) {
		place.Removed(workdir.Amount{Files: 1, Bytes: bytes})
	})
	if err == nil {
		place.Over()
	}
	return err
}

// openFiles opens the storage tier in its layout.
func openFiles(ctx context.Context, cfg *StorageConfig, dir *workdir.Dir,
	engine ioengine.Engine) (fileTier, error) {
	y := cfg.Engine
	c := filetier.Config{Dir: dir, Engine: engine, Layout: cfg.Layout, Direct: cfg.Direct,
		Extent: int64(cfg.Chunk), Capacity: cfg.StorageBytes, Advice: cfg.Advice,
		Imitation: y.Imitation}
	c.Rank, c.Depth = cfg.Rank, cfg.Depth
	if n := int64(c.Layers); c.Layerwise {
		c.Layout.Bytes = (c.Layout.Bytes + n - 1) / n
	}
	if y.Ranks > 1 {
		return openRanks(ctx, c, y.Ranks)
	}
	n := int64(len(y.Tails))
	if n == 0 {
		return newFiles(ctx, c)
	}
	c.Layout.Bytes = tiers.AlignUp((c.Layout.Bytes+n-1)/n, buffer.PageSize)
	files, err := newFiles(ctx, c)
	if err != nil {
		return nil, err
	}
	return ranks.NewGroups(files, c.Layout.Bytes, y.Tails), nil
}

// newFiles makes a file tier, and tests whether its calls work in its directory.
func newFiles(ctx context.Context, c filetier.Config) (fileTier, error) {
	t, err := filetier.New(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := t.Probe(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// openRanks opens the storage tier of n tensor-parallel ranks, which share its bytes and each have
// files of their own.
func openRanks(ctx context.Context, c filetier.Config, n int) (fileTier, error) {
	all := ranks.Config{Bytes: c.Layout.Bytes, Depth: c.Depth}
	each := int64(n)
	c.Layout.Bytes, c.Capacity = (c.Layout.Bytes+each-1)/each, (c.Capacity+each-1)/each
	if l, _ := c.Layout.Spec(); l.Direct { // it writes whole pages
		c.Layout.Bytes = tiers.AlignUp(c.Layout.Bytes, buffer.PageSize)
	}
	for i := range n {
		c.Tensor, c.World = i, n
		files, err := newFiles(ctx, c)
		if err != nil {
			for _, r := range all.Ranks {
				err = errors.Join(err, r.Close())
			}
			return nil, fmt.Errorf("tensor-parallel rank %d: %w", i, err)
		}
		all.Ranks = append(all.Ranks, files)
	}
	return ranks.New(all), nil
}

// openDir opens a work directory, and removes what an earlier run left in it. All clients share the one
// directory of a Folder. Rank 0 opens it first and removes what an earlier run left; then the others. A
// client on another host may find another filesystem there: the first of them opens it, and the rest,
// which found it locked, open it after that.
func (t *trial) openDir(ctx context.Context, opt workdir.Options) (dir *workdir.Dir, err error) {
	if opt.Shared = opt.Folder != nil && t.Group.Size() > 1; !opt.Shared {
		return workdir.Open(ctx, opt)
	}
	for round := 0; ; round++ {
		if dir == nil && (round > 0 || t.Group.Rank() == 0) {
			dir, err = workdir.Open(ctx, opt)
		}
		locked := round == 1 && errors.Is(err, workdir.ErrLocked)
		if round == 2 || err != nil && !locked {
			return dir, err
		}
		// The arrival at the barrier shows that a client has opened the directory.
		if failed := t.Group.Barrier(ctx); failed != nil {
			if dir != nil {
				failed = errors.Join(failed, dir.Close())
			}
			return nil, failed
		}
	}
}

// onClose registers a close function, called before those registered earlier.
func (t *trial) onClose(f func() error) {
	t.closers = append(t.closers, func(context.Context) error { return f() })
}

// closeStorage removes what the run wrote, unless files are kept, and frees all memory.
func (t *trial) closeStorage(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(t.closers) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}
