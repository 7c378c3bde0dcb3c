package plainio

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/transfer"
	"kvbench/workloads/users"
)

// Blocks reads or writes blocks of one size at random offsets in the storage tier's files. A block is
// one request. Each worker has one request in flight, and submits the next one with the same buffer.
type Blocks struct {
	Op   tiers.Op
	Size int64 // bytes of a block: a power of two, at least 4096
	// Footprint is the total size of the files in bytes.
	Footprint int64

	*mover
	level    cache.Level
	fileSize int64
	files    []region
	readable []tiers.Object // the written files if Op is Read, else none
	states   []workerState
}

var _ Routine = (*Blocks)(nil)

// Prepare writes the files and gives each worker its buffer.
func (r *Blocks) Prepare(ctx context.Context, b *Bench) error {
	if err := r.lay(b, r.Size); err != nil {
		return err
	}
	if err := r.fill(ctx, r.Footprint, 0); err != nil {
		return err
	}
	return r.start(ctx)
}

// Forecast implements [Routine]. Writes overwrite the files until the window is over.
func (r *Blocks) Forecast() kvbench.Forecast {
	f := kvbench.Forecast{Fill: r.Footprint, Room: r.Footprint}
	if r.Op == tiers.Write {
		f.WriteShare = 1
	}
	return f
}

// start gives each worker a random stream and a buffer.
func (r *Blocks) start(ctx context.Context) error {
	r.states = seedWorkers(r.bench.Seed, 0, r.bench.Workers)
	r.bench.Transfer.Chunk = int(r.Size) // also the request size of the unloaded latency
	return r.equip(ctx, r.bench.Workers, r.Size)
}

// Step submits requests until the window is over.
func (r *Blocks) Step(ctx context.Context, b *Bench, worker int) error {
	// A local copy, so that workers do not share a cache line.
	state := r.states[worker]
	defer func() { r.states[worker] = state }()
	buf := r.lease.bufs[worker]
	next := r.anywhere(buf.lane, state.draws, &state.n, r.Size, b.over.Load)
	return buf.pass(ctx, b.Clock, &tiers.IO{}, next, func(c tiers.Chunk) bool {
		c.Op = r.Op
		b.Block(buf.lane, c)
		return true
	})
}

// Objects implements [kvbench.Filled].
func (r *Blocks) Objects() []tiers.Object { return r.readable }

// Finish releases files and buffers.
func (r *Blocks) Finish(b *Bench) {
	r.mover.Finish(b)
	_ = r.close() // the run removes the files
}

// Report adds footprint, block size, file size and buffers.
func (r *Blocks) Report(res *result.Result) {
	res.PlainIO = &result.PlainIO{FootprintBytes: r.Footprint, BlockBytes: r.Size}
	res.IO.WriteDevice = result.WriteDeviceRequest
	if r.mover == nil {
		return
	}
	res.PlainIO.FileBytes = r.fileSize
	r.report(res)
}

// region is an open file.
type region struct {
	// Of a read file each has a descriptor, because lanes would contend for the kernel's count of its users.
	lanes []tiers.Submitter
	close func() error
}

// mostReaders limits the descriptors of all files. With more files several lanes share a descriptor.
const mostReaders = 1024

// fill writes the files in requests of fieldFill bytes, whatever the block size. Small requests would be
// slow, and one request of 16 MiB takes 3 s on a slow drive. Without a time limit a batch has fieldFillers
// files and as many requests in flight. With a time limit the first batch is one file with fieldFirst
// requests in flight. Later batches have as many requests in flight as the storage writes in 250 ms.
const (
	fieldFill    = 1 << 20
	fieldFillers = 16
	fieldFirst   = 4
)

// lay chooses the size of the files, for requests of up to most bytes. It returns an error for an object
// store and for buffered files. The files stay open, like a slot file of an engine's cache. Requests
// overwrite blocks that fill has written, so they change no metadata, and no flush follows them.
func (r *Blocks) lay(b *Bench, most int64) error {
	level, err := b.Level(tiers.Storage)
	if err != nil {
		return err
	}
	r.level = level
	m, err := newMover(b, level)
	if err != nil {
		return err
	}
	switch {
	case m.plain == nil:
		return errors.New("requests inside files need a directory: an object store takes " +
			"whole objects (-cache-dir)")
	case m.tier.Traits().CountsAtCommit:
		return errors.New("requests inside files need direct I/O, and the files of this run " +
			"are behind the page cache, which would answer them (-io, or the filesystem refuses " +
			"direct I/O)")
	}
	m.chunk = max(most, fieldFill)
	r.fileSize = m.wholeChunks(min(m.largest(), r.Footprint/fieldFillers))
	m.chunk, r.mover = fieldFill, m
	return nil
}

// fill writes files with footprint bytes in total, at least one file, and opens them. until is the time
// limit for all files except the first; 0 = no limit. A batch has as many files as fit into half of the
// time left, at the rate so far. The caller has to call close, also after an error.
func (r *Blocks) fill(ctx context.Context, footprint int64, until time.Duration) error {
	n := max(1, int(footprint/r.fileSize))
	l, err := r.buffers(ctx, min(fieldFillers, n*int(r.fileSize/fieldFill)), fieldFill)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // also the progress on the live line
	var done atomic.Int64
	r.bench.Filling(ctx, "filling", int64(n)*r.fileSize, &done)
	begun := r.bench.Clock.Now()
	for whole := true; err == nil && whole && len(r.files) < n; {
		files, streams := fieldFillers, len(l.bufs)
		if until > 0 {
			files, streams = 1, min(streams, fieldFirst)
		}
		if now := r.bench.Clock.Now(); until > 0 && len(r.files) > 0 && now > begun {
			perSecond := float64(len(r.files)) * float64(r.fileSize) / (now - begun).Seconds()
			room := perSecond * (until - now).Seconds() / float64(r.fileSize)
			if room < 1 {
				break
			}
			files = min(fieldFillers, max(1, int(room/2)))
			streams = min(len(l.bufs), max(fieldFirst, int(perSecond/4/fieldFill)))
		}
		whole, err = r.batch(ctx, l, min(files, n-len(r.files)), streams, until)
		done.Store(int64(len(r.files)) * r.fileSize)
	}
	return errors.Join(err, l.free())
}

// batch writes files concurrently: a piece of each file in turn. whole reports whether all files were
// complete before the time limit. If not, batch removes them.
func (r *Blocks) batch(ctx context.Context, l *lease, files, streams int,
	until time.Duration) (whole bool, err error) {
	objects, made := make([]tiers.Object, files), make([]tiers.Writer, files)
	abort := func(err error) error {
		for _, w := range made {
			if w != nil {
				err = errors.Join(err, w.Abort())
			}
		}
		return err
	}
	for i := range made {
		objects[i] = r.bench.Object(r.level, r.fileSize)
		if made[i], err = r.plain.Create(ctx, objects[i]); err != nil {
			made[i] = nil
			return false, abort(err)
		}
	}
	pieces := int64(files) * (r.fileSize / fieldFill)
	var begun, ended atomic.Int64
	err = r.bench.Concurrently(ctx, streams, func(ctx context.Context, i int) error {
		stamps := r.newStamper()
		next := func(io *tiers.IO) tiers.Submitter {
			if until > 0 && len(r.files) > 0 && r.bench.Clock.Now() >= until {
				return nil
			}
			at := begun.Add(1) - 1
			if at >= pieces {
				return nil
			}
			io.Off, io.N = at/int64(files)*fieldFill, fieldFill
			stamps.stampBlocks(io.Buf.B)
			return made[at%int64(files)]
		}
		return l.bufs[i].pass(ctx, r.bench.Clock, &tiers.IO{}, next, func(tiers.Chunk) bool {
			ended.Add(1)
			return true
		})
	})
	if err != nil || ended.Load() < pieces {
		return false, abort(err)
	}
	regions := make([]region, files)
	lanes := max(1, min(r.bench.Lanes, mostReaders/max(1, int(r.Footprint/r.fileSize))))
	err = r.bench.Concurrently(ctx, files, func(ctx context.Context, i int) (err error) {
		regions[i], err = r.open(ctx, made[i], objects[i], lanes)
		return err
	})
	r.files = append(r.files, slices.DeleteFunc(regions,
		func(p region) bool { return p.close == nil })...)
	if r.Op == tiers.Read {
		r.readable = append(r.readable, objects...)
	}
	return true, err
}

// open opens a written file for requests of a number of lanes.
func (r *Blocks) open(ctx context.Context, w tiers.Writer, o tiers.Object, lanes int) (region, error) {
	if r.Op == tiers.Write {
		return region{[]tiers.Submitter{w}, func() error { return w.Commit(over) }}, nil
	}
	if err := w.Commit(ctx); err != nil {
		return region{}, err
	}
	p := region{close: func() error { return nil }}
	for range lanes {
		file, err := r.plain.Open(ctx, o)
		if err != nil {
			return region{}, errors.Join(err, p.close())
		}
		others := p.close
		p.lanes = append(p.lanes, file)
		p.close = func() error { return errors.Join(others(), file.Close()) }
	}
	return p, nil
}

// over is a context that has ended. With it the final flush waits for at most tiers.Grace, because nothing
// measures that flush.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// close flushes and closes the files.
func (r *Blocks) close() (err error) {
	for _, p := range r.files {
		err = errors.Join(err, p.close())
	}
	r.files = nil
	return err
}

// anywhere returns a function that makes requests of a lane at random offsets, aligned to the request
// size. *n counts the draws. The function makes no further request once until returns true.
func (r *Blocks) anywhere(lane int, draws users.Stream, n *int64, request int64,
	until func() bool) transfer.Next {
	places, stamps := int(r.fileSize/request), r.newStamper()
	return func(io *tiers.IO) tiers.Submitter {
		if until() {
			return nil
		}
		*n++
		i := draws.Between(users.DrawObject, *n, 0, len(r.files)*places-1)
		io.Off, io.N = int64(i%places)*request, int(request)
		if r.Op == tiers.Write && r.holds() {
			stamps.stampBlocks(io.Buf.B[:request])
		}
		lanes := r.files[i/places].lanes
		return lanes[lane%len(lanes)]
	}
}
