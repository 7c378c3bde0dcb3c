package kvbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"kvbench/tiers/sim"
	"kvbench/tiers/spread"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// openStorage opens the I/O engine, the buffers, the tiers and the cache. If it fails, the caller has to
// call closeStorage.
func (t *trial) openStorage(ctx context.Context) (err error) {
	cfg := &t.cfg.Storage
	chunk := cfg.Chunk
	if cfg.GPUBytes > 0 && cfg.Cards > 0 && !cfg.Simulated {
		if err := t.openCards(); err != nil {
			return err
		}
	}
	if cfg.StorageBytes > 0 && cfg.Levels == nil && cfg.Bucket == nil {
		if err := t.openEngine(); err != nil {
			return err
		}
	}
	if !cfg.Simulated {
		want, got := cfg.Buffers()
		// Each tensor-parallel rank has buffers of its own, for its part of an object.
		if n := cfg.Engine.Ranks; n > 1 {
			want, got = want*n, got*n
			chunk = tiers.AlignUp((chunk+n-1)/n, buffer.PageSize)
		}
		if t.engine != nil { // the storage tier has files
			t.nodes = host.StorageNodes(cfg.dirs()...)
		}
		if t.Pool, err = t.NewPool(got, chunk); err != nil {
			return fmt.Errorf("making %d I/O buffers of %d bytes: %w", got, chunk, err)
		}
		t.onClose(t.Pool.Close)
		t.info.IO.Pool = result.Pool{Buffers: got, BufferBytes: chunk,
			HugePages: t.Pool.HugePages(), NUMA: t.Pool.Placed(), Covers: got >= want}
	}
	t.Content = content.New(cfg.Nonce, cfg.Rank)
	t.Transfer = &transfer.Settings{Pool: t.Pool, Chunk: chunk, Depth: cfg.Depth,
		FlushOnly: cfg.FlushOnly, Clock: t.Clock}
	t.Sink = &content.Verifier{Content: t.Content, Verify: cfg.Verify}
	for _, l := range cfg.Levels {
		if files := l.Files(); files != nil {
			l.Tier = transfer.New(files, t.Transfer)
		}
		t.Levels = append(t.Levels, l)
	}
	if cfg.Levels == nil {
		if err := t.openTiers(ctx); err != nil {
			return err
		}
	}
	t.Cache = cache.New(cache.Config{Levels: t.Levels, Source: t.Content.Source,
		Sink: t.Sink, Policy: cfg.Policy.Policy, Tails: cfg.Engine.Tails, MaxWriters: cfg.MaxWriters,
		Clock: t.Clock, Observer: (*observer)(t)})
	t.closers = append(t.closers, t.Cache.Close)
	t.Reference = newReference(&cfg.Policy, t.Levels, t.Clock)
	return nil
}

func (t *trial) openTiers(ctx context.Context) error {
	cfg := &t.cfg.Storage
	add := func(kind tiers.Kind, tier tiers.Tier, capacity int64) {
		t.onClose(tier.Close)
		t.Levels = append(t.Levels, cache.Level{Kind: kind, Tier: tier, Capacity: capacity})
	}
	if n := cfg.GPUBytes; t.cards != nil {
		t.Levels = append(t.Levels, cache.Level{Kind: tiers.GPU, Tier: transfer.New(t.cards, t.Transfer),
			Capacity: n})
	} else if n > 0 {
		add(tiers.GPU, transfer.New(sim.NewLink(cfg.GPUBandwidth, t.Clock), t.Transfer), n)
	}
	if n := cfg.CPUBytes; n > 0 {
		memory, err := memtier.New(n, t.nodes...) // on the NUMA nodes of the storage tier's devices
		if err != nil {
			return fmt.Errorf("making a cpu tier of %d bytes: %w", n, err)
		}
		memory.Prefault()
		add(tiers.CPU, transfer.New(memory, t.Transfer), n)
	}
	if cfg.StorageBytes <= 0 {
		return nil
	}
	if cfg.Bucket != nil {
		return t.openBucket(ctx)
	}
	ranks, err := t.openRoots(ctx)
	if err != nil {
		return err
	}
	add(tiers.Storage, t.storageTier(ranks), cfg.StorageBytes)
	var paths []string
	for _, d := range t.dirs {
		paths = append(paths, d.path)
	}
	t.info.IO.CacheDir = strings.Join(paths, ",")
	t.info.IO.Mode = "direct" // the mode that the filesystem granted, which may differ from -io
	for _, f := range t.files {
		if !f.Direct() {
			t.info.IO.Mode = "buffered"
		}
		t.info.IO.CachedWrites = t.info.IO.CachedWrites || f.Cached()
		for _, w := range f.Warnings() {
			if !slices.Contains(t.info.Warnings, w) {
				t.warn(w)
			}
		}
	}
	return nil
}

// storageTier returns the tier over the files of the tensor-parallel ranks. One rank may have groups of
// layers.
func (t *trial) storageTier(ranks []tiers.Files) tiers.Tier {
	cfg := &t.cfg.Storage
	var list []tiers.Tier
	for _, f := range ranks {
		list = append(list, transfer.New(f, t.Transfer))
	}
	c, bytes := cfg.filesOfRank()
	switch y := cfg.Engine; {
	case len(y.Tails) > 0:
		return spread.NewGroups(list[0], c.Layout.Bytes, y.Tails)
	case len(list) > 1:
		return spread.NewRanks(list, bytes, c.Depth)
	}
	return list[0]
}

// openRoots opens the directories of the storage tier, and the files in them. It returns the files of each
// tensor-parallel rank.
func (t *trial) openRoots(ctx context.Context) (ranks []tiers.Files, err error) {
	cfg := t.cfg.Storage
	n := int64(len(cfg.Roots))
	slot := int64(1)
	if y, _ := cfg.Layout.Spec(); y.Blocks && cfg.Layout.Bytes > 0 {
		slot = cfg.Layout.Bytes
	}
	parts := make([][]spread.Part, max(1, cfg.Engine.Ranks)) // by rank
	for i, r := range cfg.Roots {
		where := ""
		if n > 1 {
			where = ", in " + r.Dir
			// A slot file has its full size from the start: the directory's share and one slot.
			cfg.StorageBytes = (t.cfg.Storage.StorageBytes+n-1)/n + slot
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
		files, err := t.openFiles(ctx, &cfg, dir, i)
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, files...)
		if n == 1 {
			t.Dir = dir
			for _, f := range files {
				ranks = append(ranks, f)
			}
			return ranks, nil
		}
		for rank, f := range files {
			parts[rank] = append(parts[rank], spread.Part{Tier: f, Room: r.Room / int64(len(files))})
		}
		t.info.IO.Roots = append(t.info.IO.Roots,
			result.Root{Directory: r.Dir, RoomBytes: r.Room})
	}
	t.Rec.Parts(len(cfg.Roots))
	for _, list := range parts {
		files := spread.New(list...)
		t.spreads, ranks = append(t.spreads, files), append(ranks, files)
	}
	return ranks, nil
}

// openEngine makes the engine that reads and writes the files.
func (t *trial) openEngine() error {
	cfg, io := &t.cfg.Storage, &t.info.IO
	threads, _ := host.Procs(runtime.NumCPU())
	if cfg.Lanes > 0 {
		threads = min(threads, cfg.Lanes)
	}
	use := ioengine.Use{Direct: cfg.Direct, Chained: cfg.Chained, Threads: threads}
	for _, dir := range cfg.dirs() { // openRoots reports an error of the directory
		fs, _ := host.FilesystemOf(dir)
		use.Inline = use.Inline || host.FUSE(fs.Type)
		use.Memory = use.Memory || fs.Memory
	}
	e, choice, err := ioengine.Open(cmp.Or(cfg.IOEngine, ioengine.Auto), use, t.Clock.Now, t.paused)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.engine, io.Engine = e, choice.Name
	t.mu.Unlock()
	io.EngineAbout, io.EngineReason, io.Rings = choice.About, choice.Reason, choice.Rings
	// The engine is closed last, after the buffers that are registered with it. Close waits for requests
	// in flight as long as the caller waits for the trial's end.
	t.closers = append(t.closers, e.Close)
	return nil
}

// NewPool allocates I/O buffers on the NUMA nodes of the storage tier's devices. It registers them with
// the I/O engine, so that a request need not pin its pages. If the system refuses the registration, each
// request pins its pages, and the result has the reason.
func (e *Env) NewPool(buffers, size int) (*buffer.Pool, error) {
	t := e.trial
	p, err := buffer.NewPool(buffers, size, t.nodes...)
	if err == nil && t.cards != nil {
		if err := p.Register(t.cards.Pins()); err != nil {
			t.warn(fmt.Sprintf("copies to and from the card are slower than its link: %v", err))
		}
	}
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

// BufferBound returns the largest total size in bytes of the buffers for one use.
func (e *Env) BufferBound() int64 { return e.trial.cfg.Storage.Bound() }

// openBucket opens the run's prefix in a bucket, and registers its removal.
func (t *trial) openBucket(ctx context.Context) error {
	cfg := &t.cfg.Storage
	c := cfg.Bucket.Config
	c.Rank, c.Nonce, c.Keep, c.Depth = cfg.Rank, t.info.Nonce, cfg.KeepFiles, cfg.Depth
	if c.Folder = cfg.Folder; c.Folder != nil {
		c.Names = objecttier.Names{Format: objecttier.Files}
	}
	c.Store.Rank, c.Store.Clock, c.Pool, c.Chunk = cfg.Rank, t.Clock, t.Pool, cfg.Chunk
	t.objects = record.NewObjects(t.Rec, len(c.Store.URLs), t.Clock.Now)
	c.Store.Observer = t.objects
	t.stage("looking at the store")
	tier, err := t.openShared(ctx, c)
	if err != nil {
		return fmt.Errorf("opening the storage tier: %w", err)
	}
	t.bucket = tier
	t.objects.Store = record.DescribeStore(c, cfg.Bucket.From,
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

// openShared opens the tier. In a folder of several clients rank 0 opens it first, and the other clients
// join.
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

// emptyBucket removes the run's objects, unless KeepFiles is set.
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

// openFiles opens the files of a directory, one file tier per tensor-parallel rank. part is the number
// of the directory.
func (t *trial) openFiles(ctx context.Context, cfg *StorageConfig, dir *workdir.Dir, part int) (
	list []*filetier.Tier, err error) {
	c, _ := cfg.filesOfRank()
	c.Dir, c.Engine, c.Part = dir, t.engine, part
	for i := range max(1, cfg.Engine.Ranks) {
		c.Tensor = i
		files, err := filetier.New(ctx, c)
		if err == nil {
			t.onClose(files.Close) // also if the next rank's files cannot be opened
			err = files.Probe(ctx) // tests the system calls in the directory
		}
		if err != nil && c.World > 0 {
			err = fmt.Errorf("tensor-parallel rank %d: %w", i, err)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, files)
	}
	return list, nil
}

// filesOfRank returns the configuration of the files of one tensor-parallel rank, without directory and
// I/O engine. bytes is the size of an object, summed over the tensor-parallel ranks.
func (cfg *StorageConfig) filesOfRank() (c filetier.Config, bytes int64) {
	y := cfg.Engine
	c = filetier.Config{Layout: cfg.Layout, Direct: cfg.Direct, Extent: int64(cfg.Chunk),
		Capacity: cfg.StorageBytes, Advice: cfg.Advice, Imitation: y.Imitation}
	c.Rank, c.Depth = cfg.Rank, cfg.Depth
	split := func(bytes *int64, n int64) { *bytes = (*bytes + n - 1) / n }
	if c.Layerwise {
		split(&c.Layout.Bytes, int64(c.Layers))
	}
	bytes = c.Layout.Bytes
	if n := y.Ranks; n > 1 {
		c.World = n
		split(&c.Layout.Bytes, int64(n))
		split(&c.Capacity, int64(n))
		if l, _ := c.Layout.Spec(); l.Direct { // the layout writes whole pages
			c.Layout.Bytes = tiers.AlignUp(c.Layout.Bytes, buffer.PageSize)
		}
	} else if n := len(y.Tails); n > 0 {
		split(&c.Layout.Bytes, int64(n))
		c.Layout.Bytes = tiers.AlignUp(c.Layout.Bytes, buffer.PageSize)
	}
	return c, bytes
}

// openDir opens a work directory and removes the files that an earlier run left in it.
//
// All clients share the directory of a Folder. Rank 0 opens it in round 0 and removes the files of an
// earlier run. The other ranks open it in round 1. On another host the path may be on another
// filesystem. There the first client removes the files in round 1, and clients that find the directory
// locked open it in round 2.
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

// onClose registers a close function. closeStorage calls the functions in reverse order.
func (t *trial) onClose(f func() error) {
	t.closers = append(t.closers, func(context.Context) error { return f() })
}

// closeStorage removes the run's files, unless KeepFiles is set, and frees buffers and tiers.
func (t *trial) closeStorage(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(t.closers) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}
