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

// write makes one checkpoint.
func (l *Load) write(ctx context.Context, step int) (run result.CheckpointRun, err error) {
	if err := l.drop(ctx, step-l.Keep); err != nil {
		return run, err
	}
	p, lines := newPipeline(l.env.Clock, l.buffers, l.Chunk, l.Writers, &l.times)
	p.fill = l.content.Fill
	l.times.producers, l.times.writers = l.Producers, l.Writers*l.Count
	// In any case the producers have ended before the buffers are reused.
	producing, stop := context.WithCancel(ctx)
	var producers sync.WaitGroup
	defer func() { stop(); producers.Wait() }()
	for range l.Producers {
		producers.Go(func() { p.produce(producing) })
	}
	// Buffers and threads exist: only the checkpoint is timed. The reference times the start of its
	// processes, too.
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
			if l.env.Dir == nil { // an object exists with its name
				return nil
			}
			// A file whose name is lost is no checkpoint.
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
	w    tiers.Writer // none for an object of a store
	busy *clock.Busy  // so far
	took time.Duration
}

// make creates the files of an accelerator.
//
// With direct I/O this allocates their blocks, so that a full disk shows here. It is work of the
// storage: for files in memory it is most of the work, because all pages are cleared. All files are
// created before the first byte is written: a filesystem reads its free-block maps from the device,
// and behind 256 MiB of writes each of these reads took 50 to 110 ms on an ext4, up to 380 ms for a
// file, while the accelerator wrote nothing.
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

// file writes one file through a line, and makes it durable. An object is durable when it is
// complete.
func (l *Load) file(ctx context.Context, a int, n *line, f file) error {
	begun := l.env.Clock.Now() - f.took
	n.busy, n.late = f.busy, l.tier.Traits().CountsAtCommit
	// Completing an object joins its parts and takes the place of a flush: the object does not
	// exist before. An object of a single part has no completion.
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

// drop removes the files of a checkpoint beyond Keep.
func (l *Load) drop(ctx context.Context, step int) error {
	if l.Keep == 0 || step < 1 {
		return nil
	}
	// Not timed: it belongs to the pause before a checkpoint.
	return l.tier.Remove(ctx, l.of(step)...)
}

// forget leaves buffers with unfinished requests to the tier.
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
