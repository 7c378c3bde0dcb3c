package checkpoint

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	files "kvbench/workloads/checkpoint"
)

// write writes checkpoint number step.
func (l *Load) write(ctx context.Context, step int) (run result.CheckpointRun, err error) {
	if err := l.drop(ctx, step-l.Keep); err != nil {
		return run, err
	}
	p, lines := newPipeline(l.env.Clock, l.buffers, l.Chunk, l.Writers, &l.times)
	p.fill = l.content.Fill
	l.times.producers, l.times.writers = l.Producers, l.Writers*l.Count
	// The producers end before the buffers are reused, also after an error.
	producing, stop := context.WithCancel(ctx)
	var producers sync.WaitGroup
	defer func() { stop(); producers.Wait() }()
	for range l.Producers {
		producers.Go(func() { p.produce(producing) })
	}
	// The time starts after the allocation of buffers and the start of threads. MLPerf Storage's time
	// includes the start of its processes.
	since, wall, err := l.start(ctx)
	if err != nil {
		return run, err
	}
	before := l.env.DeviceStat()
	made := make([][]file, l.Count)
	defer func() {
		for _, f := range slices.Concat(made...) { // no effect on complete files
			if f.w != nil {
				err = errors.Join(err, f.w.Abort())
			}
		}
	}()
	var took []time.Duration
	err = l.all(ctx, func(ctx context.Context, i int) (err error) {
		made[i], err = l.make(ctx, lines[i], step, l.files[l.source(i)])
		return err
	})
	if err == nil {
		took, err = l.timed(ctx, since, func(ctx context.Context, i int) error {
			for _, f := range made[i] {
				if err := l.file(ctx, l.First+i, lines[i], f); err != nil {
					return err
				}
			}
			if l.env.Dir == nil { // a store needs no flush of a directory
				return nil
			}
			// Flush the directory, so that the files' names are durable.
			return l.env.Dir.Sync(files.Step(step))
		})
	}
	close(p.free)
	if err != nil {
		l.forget(lines)
		return run, err
	}
	run = result.NewCheckpointRun(step, wall, l.bytes(), l.First, took)
	l.mu.Lock()
	run.FlushNS, l.longest = l.longest, nil
	l.mu.Unlock()
	l.times.total += time.Duration(run.DurationNS)
	if after := l.env.DeviceStat(); before != nil && after != nil {
		run.DeviceBytes = new(after.Sub(*before).WriteBytes)
	}
	return run, nil
}

// file is a file to write.
type file struct {
	o    tiers.Object
	w    tiers.Writer  // nil for an object of a store
	busy *clock.Busy   // the time with a call or write in flight, so far
	took time.Duration // of the creation
}

// make creates the files of an accelerator.
//
// With direct I/O the creation allocates the blocks, so a full disk shows here. The creation counts as
// work of the storage. For files in memory it is most of the work, because it clears all pages. make
// creates all files before the first write. Otherwise the filesystem would read its free-block maps
// behind the writes: behind 256 MiB of writes each of these reads took 50 to 110 ms on ext4, up to 380
// ms per file, while the accelerator wrote nothing.
func (l *Load) make(ctx context.Context, n *line, step int, list []files.File) (made []file,
	err error) {
	own := tiers.FilesOf(l.tier)
	for _, each := range list {
		f := file{o: object(step, each), busy: &clock.Busy{}}
		if own != nil {
			begun := l.env.Clock.Now()
			n.busy = f.busy
			n.enter(begun)
			f.w, err = own.Create(ctx, f.o)
			now := l.env.Clock.Now()
			n.exit(now)
			if f.took = now - begun; err != nil {
				return made, err
			}
		}
		made = append(made, f)
	}
	return made, nil
}

// file writes one file and flushes it. An object needs no flush: it is durable when it is complete.
func (l *Load) file(ctx context.Context, a int, n *line, f file) error {
	begun := l.env.Clock.Now() - f.took
	n.busy, n.late = f.busy, l.tier.Traits().CountsAtCommit
	// The completion of a multipart object counts as its flush. An object of one part has no completion.
	n.done = func(c tiers.Chunk) {
		if l.chunk(a, c); c.Flush {
			l.flushed(c.Ended - c.Begun)
		}
	}
	var err error
	if f.w == nil {
		err = n.send(ctx, f.o, l.tier)
	} else if err = n.write(ctx, f.o, f.w); err == nil {
		err = n.commit(ctx, f.o, f.w)
	}
	if err != nil {
		return err
	}
	device := n.busy.Total()
	l.moved(a, f.o, tiers.Timing{Device: device, Generation: l.env.Clock.Now() - begun - device})
	return nil
}

// drop removes the files of checkpoint number step, unless Keep is 0 or there is no such checkpoint.
func (l *Load) drop(ctx context.Context, step int) error {
	if l.Keep == 0 || step < 1 {
		return nil
	}
	// The removal is not timed. It counts as part of the pause before a checkpoint.
	return l.tier.Remove(ctx, l.of(step)...)
}

// forget drops the buffers with a request in flight, which the tier owns.
func (l *Load) forget(lines []*line) {
	for i, n := range lines {
		l.buffers[i] = slices.Clone(l.buffers[i][:0])
		for _, s := range n.slots {
			if !s.stuck {
				l.buffers[i] = append(l.buffers[i], s.buf)
			}
		}
	}
}
