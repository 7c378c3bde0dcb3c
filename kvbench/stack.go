package kvbench

import (
	"context"
	"errors"
	"fmt"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/memtier"
	"kvbench/tiers/sim"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
)

// stack is the storage side of one trial: directory, tiers, buffers, content
// and the cache over them.
type stack struct {
	cfg      StorageConfig
	dir      *workdir.Dir // nil without a file tier
	pool     *buffer.Pool
	content  *content.Content
	transfer *transfer.Transfer
	levels   []cache.Level
	own      []tiers.Tier    // made here, closed here
	file     *filetier.Tier  // nil without a file tier
	engine   ioengine.Engine // likewise
	cache    *cache.Cache
	covers   bool // the pool covers workers × depth
	warnings []string
}

// PoolUse is how the run uses its buffers.
func (c *StorageConfig) PoolUse() buffer.Use {
	return buffer.Use{Workers: c.Workers, MaxWriters: c.MaxWriters, Depth: c.Depth, Chunk: c.Chunk}
}

// openStack makes the tiers. Nothing is left behind when it fails.
func openStack(cfg StorageConfig, c clock.Clock, obs cache.Observer) (_ *stack, err error) {
	s := &stack{cfg: cfg, content: content.New(cfg.Nonce, cfg.Rank)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.Background()))
		}
	}()
	if !cfg.Simulated {
		want, got := cfg.PoolUse().Buffers()
		s.covers = got >= want
		if s.pool, err = buffer.NewPool(got, cfg.Chunk); err != nil {
			return nil, fmt.Errorf("making %d I/O buffers of %d bytes: %w", got, cfg.Chunk, err)
		}
	}
	s.transfer = &transfer.Transfer{
		Pool: s.pool, Content: s.content, Chunk: cfg.Chunk, Depth: cfg.Depth,
		Verify: cfg.Verify, FlushOnly: cfg.FlushOnly, Clock: c,
	}
	if cfg.Levels != nil {
		s.levels = cfg.Levels
	} else if err = s.openTiers(c); err != nil {
		return nil, err
	}
	s.cache, err = cache.New(cache.Config{
		Levels: s.levels, Transfer: s.transfer, MaxWriters: cfg.MaxWriters, Clock: c, Observer: obs,
	})
	return s, err
}

func (s *stack) openTiers(c clock.Clock) error {
	add := func(l tiers.Kind, t tiers.Tier, capacity int64) {
		s.own = append(s.own, t)
		s.levels = append(s.levels, cache.Level{Kind: l, Tier: t, Capacity: capacity})
	}
	if n := s.cfg.GPUBytes; n > 0 {
		t, err := sim.NewLink(s.cfg.GPUBandwidth, c)
		if err != nil {
			return err
		}
		add(tiers.GPU, t, n)
	}
	if n := s.cfg.CPUBytes; n > 0 {
		t, err := memtier.New(n)
		if err != nil {
			return fmt.Errorf("making a cpu tier of %d bytes: %w", n, err)
		}
		t.Prefault()
		add(tiers.CPU, t, n)
	}
	if s.cfg.StorageBytes <= 0 {
		return nil
	}
	dir, err := workdir.Open(workdir.Options{
		CacheDir: s.cfg.CacheDir, Rank: s.cfg.Rank, Nonce: fmt.Sprintf("%x", s.cfg.Nonce),
		Keep: s.cfg.KeepFiles,
	})
	if err != nil {
		return err
	}
	s.dir = dir
	s.engine = ioengine.NewPsync(c.Now)
	if err := s.pool.Register(s.engine.Register); err != nil {
		return err
	}
	s.file, err = filetier.New(filetier.Config{
		Dir: dir, Engine: s.engine, Layout: s.cfg.Layout, Direct: s.cfg.Direct,
		Extent: int64(s.cfg.Chunk), Capacity: s.cfg.StorageBytes,
	})
	if err != nil {
		return err
	}
	add(tiers.Storage, s.file, s.cfg.StorageBytes)
	s.warnings = append(s.warnings, s.file.Warnings()...)
	return nil
}

// close removes what the run wrote, unless files are kept, and gives back all
// memory. It may be called after a failed open and more than once.
func (s *stack) close(ctx context.Context) error {
	var errs []error
	for _, t := range s.own {
		errs = append(errs, t.Close())
	}
	s.own = nil
	if s.dir != nil {
		errs = append(errs, s.dir.Close())
		s.dir = nil
	}
	if s.engine != nil {
		ctx, cancel := context.WithTimeout(ctx, tiers.Grace)
		errs = append(errs, s.engine.Close(ctx))
		cancel()
		s.engine = nil
	}
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
		s.pool = nil
	}
	return errors.Join(errs...)
}
