package kvbench

import (
	"context"
	"errors"
	"fmt"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// stack is the storage side of one trial: directory, tiers, buffers, content
// and the cache over them.
type stack struct {
	cfg      StorageConfig
	dir      *tiers.OwnedDir // nil without a file tier
	pool     *tiers.Pool
	content  *tiers.Content
	transfer *tiers.Transfer
	levels   []tiers.LevelConfig
	own      []tiers.Tier    // made here, closed here
	file     *tiers.FileTier // nil without a file tier
	cache    *tiers.Cache
	covers   bool // the pool covers workers × depth
	warnings []string
}

// PoolUse is how the run uses its buffers.
func (c *StorageConfig) PoolUse() tiers.PoolUse {
	return tiers.PoolUse{Workers: c.Workers, MaxWriters: c.MaxWriters, Depth: c.Depth, Chunk: c.Chunk}
}

// openStack makes the tiers. Nothing is left behind when it fails.
func openStack(cfg StorageConfig, c clock.Clock, obs tiers.Observer) (_ *stack, err error) {
	s := &stack{cfg: cfg, content: tiers.NewContent(cfg.Nonce, cfg.Rank)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.Background()))
		}
	}()
	if !cfg.Simulated {
		want, got := cfg.PoolUse().Buffers()
		s.covers = got >= want
		if s.pool, err = tiers.NewPool(got, cfg.Chunk); err != nil {
			return nil, fmt.Errorf("making %d I/O buffers of %d bytes: %w", got, cfg.Chunk, err)
		}
	}
	s.transfer = &tiers.Transfer{
		Pool: s.pool, Content: s.content, Chunk: cfg.Chunk, Depth: cfg.Depth,
		Verify: cfg.Verify, FlushOnly: cfg.FlushOnly, Now: c.Now,
	}
	if cfg.Levels != nil {
		s.levels = cfg.Levels
	} else if err = s.openTiers(c); err != nil {
		return nil, err
	}
	s.cache, err = tiers.NewCache(tiers.CacheConfig{
		Levels: s.levels, Transfer: s.transfer, MaxWriters: cfg.MaxWriters, Clock: c, Observer: obs,
	})
	return s, err
}

func (s *stack) openTiers(c clock.Clock) error {
	add := func(l tiers.Level, t tiers.Tier, capacity int64) {
		s.own = append(s.own, t)
		s.levels = append(s.levels, tiers.LevelConfig{Level: l, Tier: t, Capacity: capacity})
	}
	if n := s.cfg.GPUBytes; n > 0 {
		t, err := tiers.NewGPUTier(s.cfg.GPUBandwidth, c.Sleep, c.Now)
		if err != nil {
			return err
		}
		add(tiers.GPU, t, n)
	}
	if n := s.cfg.CPUBytes; n > 0 {
		t, err := tiers.NewCPUTier(n)
		if err != nil {
			return fmt.Errorf("making a cpu tier of %d bytes: %w", n, err)
		}
		t.Prefault()
		add(tiers.CPU, t, n)
	}
	if s.cfg.StorageBytes <= 0 {
		return nil
	}
	dir, err := tiers.OpenOwnedDir(tiers.OwnedOptions{
		CacheDir: s.cfg.CacheDir, Rank: s.cfg.Rank, Nonce: fmt.Sprintf("%x", s.cfg.Nonce), Keep: s.cfg.KeepFiles,
	})
	if err != nil {
		return err
	}
	s.dir = dir
	opt := tiers.FileOptions{Direct: s.cfg.Direct, SpareProcs: s.cfg.SpareProcs}
	tier, file, err := tiers.NewStorageTier(dir, opt, s.cfg.Layout, s.cfg.StorageBytes)
	if err != nil {
		return err
	}
	s.file = file
	add(tiers.Storage, tier, s.cfg.StorageBytes)
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
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
		s.pool = nil
	}
	return errors.Join(errs...)
}
