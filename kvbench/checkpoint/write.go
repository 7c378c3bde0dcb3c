package checkpoint

import (
	"context"
	"errors"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	files "kvbench/workloads/checkpoint"
)

// write writes checkpoint number step.
func (l *Load) write(ctx context.Context, step int) (run result.CheckpointRun, err error) {
	// The removal is not timed. It counts as part of the pause before a checkpoint.
	if l.Keep > 0 && step > l.Keep {
		if err := l.tier.Remove(ctx, l.objects(step-l.Keep)...); err != nil {
			return run, err
		}
	}
	// The time starts after the allocation of buffers and the start of threads. MLPerf Storage's time
	// includes the start of its processes. The producers end before the buffers are reused.
	if !l.Before {
		defer l.pipe.start(ctx)()
	} else if err := l.pipe.prepare(ctx, func(i int) (list []tiers.Object) {
		for _, f := range l.files[l.source(i)] {
			list = append(list, object(step, f))
		}
		return list
	}); err != nil {
		return run, err
	}
	made := make([][]file, l.Count)
	defer func() {
		for _, f := range slices.Concat(made...) { // no effect on complete files
			if f.w != nil {
				err = errors.Join(err, f.w.Abort())
			}
		}
	}()
	run, err = l.timed(ctx, step, func(ctx context.Context, i int) (err error) {
		made[i], err = l.make(ctx, l.pipe.lines[i], step, l.files[l.source(i)])
		return err
	}, func(ctx context.Context, i int) error {
		for _, f := range made[i] {
			if err := l.file(ctx, l.First+i, l.pipe.lines[i], f); err != nil {
				return err
			}
		}
		if l.env.Dir == nil { // a store needs no flush of a directory
			return nil
		}
		// Flush the directory, so that the files' names are durable.
		return l.env.Dir.Sync(files.Step(step))
	})
	if err == nil {
		l.pipe.total += time.Duration(run.DurationNS)
	}
	return run, err
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
