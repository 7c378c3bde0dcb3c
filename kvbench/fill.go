package kvbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kvbench/tiers"
	"kvbench/workloads"
)

// populate writes the entries that decode-only reads: bounded by nothing but
// the workers (spec 6), outside the window.
func (t *trial) populate(ctx context.Context) error {
	p := t.cfg.Population
	if p.Entries == 0 {
		return nil
	}
	size := t.cfg.Planner.Sizer.Bytes(p.Tokens)
	if err := t.populationFits(size); err != nil {
		return err
	}
	f := filler{
		trial: t, stage: "filling", size: size, entries: int64(p.Entries),
		key: workloads.PopulationKey, writers: min(t.cfg.Workers, p.Entries),
	}
	_, err := f.fill(ctx)
	return err
}

// populationFits refuses a population larger than the terminal tier.
func (t *trial) populationFits(size int64) error {
	entries := t.cfg.Population.Entries
	total := int64(entries) * size
	last := t.stack.levels[len(t.stack.levels)-1]
	if total <= last.Capacity {
		return nil
	}
	fit := last.Capacity / size / populationPerUser
	return fmt.Errorf("%w: decode-only needs %d entries of %d bytes (%d bytes in all) in the %s tier of %d bytes: -num-users %d would fit, or a larger -storage-capacity-gb",
		tiers.ErrTooLarge, entries, size, total, last.Level, last.Capacity, fit)
}

// populationPerUser is how many entries decode-only writes per user (spec 5).
const populationPerUser = 10

// precondition writes until the drive has shown its steady state (spec 11). Its
// entries stay as the first victims: deleting them would trim the drive and
// undo it.
func (t *trial) precondition(ctx context.Context) error {
	p := t.cfg.Precondition
	if p.Bytes == 0 {
		return nil
	}
	if p.Tokens == 0 {
		p.Tokens = 2048
	}
	if p.Threads == 0 {
		p.Threads = runtime.NumCPU()
	}
	size := t.cfg.Planner.Sizer.Bytes(p.Tokens)
	f := filler{
		trial: t, stage: "preconditioning", size: size, entries: (p.Bytes + size - 1) / size,
		key: workloads.PreconditionKey, writers: p.Threads,
	}
	start := t.clock.Now()
	rates, err := f.fill(ctx)
	t.info.Precondition = &PreconditionReport{
		Bytes: f.done.Load(), DurationNS: int64(t.clock.Now() - start), Writers: p.Threads,
		LastRates: rates, Spread: spread(rates),
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("preconditioning filled the disk after %d of %d bytes: give a smaller -storage-capacity-gb or -precondition-size-gb: %w",
			f.done.Load(), p.Bytes, err)
	}
	return err
}

// filler writes entries key(0), key(1), … of one size with several writers.
type filler struct {
	trial   *trial
	stage   string
	size    int64
	entries int64
	key     func(n int) string
	writers int

	next, done atomic.Int64
}

// rounds is into how many rounds of equal bytes a filling is cut; the rates of
// the last reported of them show whether the rate has settled.
const (
	rounds   = 10
	reported = 4
)

// fill returns when all is written or something failed. Interrupted, it does not
// wait long for the writers: they are the trial's workers, clean waits for them.
func (f *filler) fill(ctx context.Context) ([]float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for n := range f.writers {
		wg.Add(1)
		f.trial.workers.Go(func() {
			defer wg.Done()
			if err := f.write(ctx, n); err != nil {
				cancel(err)
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	go func() { // a filesystem that runs short ends the filling, too
		select {
		case <-f.trial.ending.failed:
			_, err := f.trial.ended()
			cancel(err)
		case <-finished:
		case <-ctx.Done():
		}
	}()
	rates := f.follow(ctx, finished)
	if err := context.Cause(ctx); err != nil {
		return rates, fmt.Errorf("%s: %w", f.stage, err)
	}
	return rates, nil
}

func (f *filler) write(ctx context.Context, writer int) error {
	tag := tiers.Tag{Shard: writer, Phase: tiers.Prefill, Unbounded: true}
	var lease tiers.Lease
	for {
		n := f.next.Add(1) - 1
		if n >= f.entries || ctx.Err() != nil {
			return nil
		}
		f.trial.stack.cache.Decide(&lease, []tiers.Intent{{Key: f.key(int(n)), Size: f.size, Write: true}})
		_, err := lease.Write(ctx, 0, tag)
		lease.Close(ctx, tag)
		if err != nil {
			return err
		}
		f.done.Add(f.size)
	}
}

// follow shows progress and measures the rate of each round until all is done.
func (f *filler) follow(ctx context.Context, finished <-chan struct{}) []float64 {
	t := f.trial
	total := f.entries * f.size
	begin := t.clock.Now()
	var rates []float64
	mark, at, told := int64(0), begin, begin
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	stopped := ctx.Done()
	var patience <-chan time.Time
	for {
		over := false
		select {
		case <-finished:
			over = true
		case <-patience:
			over = true
		case <-stopped:
			stopped, patience = nil, time.After(drainOnSignal)
		case <-tick.C:
		}
		now, done := t.clock.Now(), f.done.Load()
		if done-mark >= max(1, total/rounds) || (over && done > mark) {
			if now > at {
				rates = append(rates, float64(done-mark)/(now-at).Seconds())
			}
			mark, at = done, now
		}
		if over {
			return rates[max(0, len(rates)-reported):]
		}
		if now-told < time.Second {
			continue
		}
		told = now
		free := t.freeSpace()
		if t.cfg.Progress != nil {
			t.cfg.Progress(Snapshot{Stage: f.stage, Elapsed: now - begin, Done: done, Of: total, Free: free})
		}
	}
}

// spread is (max - min) ÷ mean.
func spread(rates []float64) float64 {
	if len(rates) == 0 {
		return 0
	}
	lo, hi, sum := rates[0], rates[0], 0.0
	for _, r := range rates {
		lo, hi, sum = min(lo, r), max(hi, r), sum+r
	}
	return (hi - lo) * float64(len(rates)) / sum
}
