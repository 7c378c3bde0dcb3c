package checkpoint

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// pipeline moves the bytes of one checkpoint from producers to the tier. A producer gets a free buffer
// and the offset of the next chunk. A writer gets the full buffer. The buffer is free again when the
// tier has completed the write. Both queues have room for all buffers, so that sending to them never
// blocks.
//
// A line writes the files of one accelerator, one file at a time. All lines share the producers.
type pipeline struct {
	clock   clock.Clock
	fill    func(buf []byte, o tiers.Object, off int64)
	free    chan *slot // free buffers, each with the chunk to generate
	writers int        // per line
	chunk   int64
	times   *times
}

// slot is a buffer with the chunk that it holds or will hold.
type slot struct {
	line *line
	buf  tiers.Buffer
	off  int64
	io   tiers.IO
	back chan struct{}
	// stuck: the tier has not completed the request and owns the buffer.
	stuck bool
}

// line has an accelerator's buffers and the file that is being written.
type line struct {
	p      *pipeline
	slots  []*slot
	full   chan *slot  // generated chunks, for write
	filled func(*slot) // a producer calls it with a generated chunk

	// The current file:
	o    tiers.Object
	to   tiers.Submitter
	next atomic.Int64 // chunks given to producers
	busy *clock.Busy  // the time with a write or the flush in flight
	done func(tiers.Chunk)
	late bool // the bytes count at the flush
	// completing: the flush of the file, or the completion of the object, is in progress.
	completing bool
}

// times has the work and the waits of producers and writers, over all lines and checkpoints.
type times struct {
	generation, producerWait, writerWait atomic.Int64 // ns, summed over threads
	generating, io, closing              clock.Busy   // time in which at least one is in progress
	chunks                               atomic.Int64
	total                                time.Duration // duration of the checkpoints
	producers, writers                   int           // number of threads over all lines
}

// newPipeline returns a pipeline with a line for each element of buffers. The caller keeps the buffers.
func newPipeline(c clock.Clock, buffers [][]tiers.Buffer, chunk int64, writers int, t *times) (
	*pipeline, []*line) {
	p := &pipeline{clock: c, chunk: chunk, writers: writers, times: t}
	var lines []*line
	n := 0
	for _, part := range buffers {
		l := &line{p: p, full: make(chan *slot, len(part))}
		for _, b := range part {
			s := &slot{line: l, buf: b, back: make(chan struct{}, 1)}
			s.io.Done = func(*tiers.IO) { s.back <- struct{}{} }
			l.slots = append(l.slots, s)
		}
		l.filled = func(s *slot) { l.full <- s }
		lines, n = append(lines, l), n+len(part)
	}
	// free has room for all buffers, so that the return of a buffer never blocks.
	p.free = make(chan *slot, n)
	return p, lines
}

// produce fills free buffers until free is closed. The time from its last buffer to the end of the
// checkpoint also counts as producerWait. With many buffers this is the only wait.
func (p *pipeline) produce(ctx context.Context) {
	for {
		from := p.clock.Now()
		var s *slot
		select {
		case s = <-p.free:
		case <-ctx.Done():
			return
		}
		now := p.clock.Now()
		p.times.producerWait.Add(int64(now - from))
		if s == nil {
			return
		}
		p.times.generating.Enter(now)
		p.fill(s.buf.B, s.line.o, s.off)
		ended := p.clock.Now()
		p.times.generating.Exit(ended)
		p.times.generation.Add(int64(ended - now))
		s.line.filled(s)
	}
}

// chunks returns the number of chunks of a file.
func (p *pipeline) chunks(size int64) int64 { return (size + p.chunk - 1) / p.chunk }

// give returns a buffer to the producers for the next chunk, if there is one.
func (l *line) give(s *slot) {
	if i := l.next.Add(1) - 1; i < l.p.chunks(l.o.Size) {
		s.off = i * l.p.chunk
		l.p.free <- s
	}
}

// write writes a file's chunks to the tier. It returns when all writes are completed, or with the first
// error. After an error the line is unusable, because the tier may own its buffers.
func (l *line) write(ctx context.Context, o tiers.Object, to tiers.Submitter) error {
	l.o, l.to = o, to
	l.next.Store(0)
	chunks := l.p.chunks(o.Size)
	for _, s := range l.slots[:min(int64(len(l.slots)), chunks)] {
		l.give(s)
	}
	// The writer of the last chunk closes over, which ends the other writers.
	var taken atomic.Int64
	over := make(chan struct{}) // closed when writers have taken all chunks
	all, each := errgroup.WithContext(ctx)
	// Each writer is a goroutine with one write in flight, so that its waiting time is known.
	for range min(int64(l.p.writers), chunks) {
		all.Go(func() error {
			for {
				from := l.p.clock.Now()
				select {
				case s := <-l.full:
					l.p.times.writerWait.Add(int64(l.p.clock.Now() - from))
					if taken.Add(1) == chunks {
						close(over)
					}
					if err := l.put(each, s); err != nil {
						return err
					}
				case <-over:
					return nil
				case <-each.Done():
					return context.Cause(each)
				}
			}
		})
	}
	return cmp.Or(all.Wait(), context.Cause(ctx))
}

// put writes one chunk and waits for its completion, for at most tiers.Grace once ctx has ended.
func (l *line) put(ctx context.Context, s *slot) error {
	// The last chunk is shorter than its buffer. Direct I/O writes the rest of the buffer as padding.
	n := min(l.p.chunk, l.o.Size-s.off)
	s.io.Buf, s.io.Off, s.io.N = s.buf, s.off, int(n)
	s.io.Buf.B = s.buf.B[:n]
	s.io.Begun, s.io.Ended = 0, 0
	asked := l.p.clock.Now()
	l.enter(asked)
	l.to.Submit(&s.io)
	if !completed(ctx, s.back) {
		s.stuck = true
		return context.Cause(ctx)
	}
	now := l.p.clock.Now()
	l.exit(now)
	if s.io.Err != nil {
		return s.io.Err
	}
	// Through the page cache the bytes have not reached the device yet: the flush counts them.
	c := tiers.Chunk{Op: tiers.Write, Bytes: n, Begun: s.io.Begun, Ended: s.io.Ended, Asked: asked,
		Done: now}
	if c.Ended == 0 { // the tier does not measure the request
		c.Begun, c.Ended = asked, now
	}
	if l.late {
		c.Bytes = 0
	}
	l.done(c)
	l.p.times.chunks.Add(1)
	l.give(s)
	return nil
}

// commit flushes a file. It does not repeat a flush that failed: the kernel has dropped the dirty pages,
// and the next fsync would report success.
func (l *line) commit(ctx context.Context, o tiers.Object, w tiers.Writer) error {
	c := tiers.Chunk{Op: tiers.Write, Flush: true, Begun: l.p.clock.Now()}
	l.complete(true)
	err := w.Commit(ctx)
	l.complete(false)
	if err != nil {
		return err
	}
	now := l.p.clock.Now()
	c.Asked, c.Ended, c.Done = c.Begun, now, now
	if l.late {
		c.Bytes = o.Size
	}
	l.done(c)
	return nil
}

// complete starts or ends the busy time of a flush or of the completion of an object.
func (l *line) complete(begins bool) {
	now := l.p.clock.Now()
	switch {
	case begins && !l.completing:
		l.enter(now)
		l.p.times.closing.Enter(now)
	case !begins && l.completing:
		l.p.times.closing.Exit(now)
		l.exit(now)
	}
	l.completing = begins
}

// completed waits for a request, but at most Grace once ctx has ended.
func completed(ctx context.Context, back <-chan struct{}) bool {
	select {
	case <-back:
		return true
	case <-ctx.Done():
	}
	// A request cannot be cancelled. Until its completion its buffer is the device's.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), tiers.Grace)
	defer cancel()
	select {
	case <-back:
		return true
	case <-grace.Done():
		return false
	}
}

func (l *line) enter(now time.Duration) {
	l.busy.Enter(now)
	l.p.times.io.Enter(now)
}

func (l *line) exit(now time.Duration) {
	l.busy.Exit(now)
	l.p.times.io.Exit(now)
}

// report returns the times for the result. Waits are means over the threads.
func (t *times) report() *result.Pipeline {
	p := &result.Pipeline{Producers: t.producers, Writers: t.writers, Chunks: t.chunks.Load(),
		GenerationNS: t.generation.Load(), GenerationWallNS: int64(t.generating.Total()),
		IONS: int64(t.io.Total()), CloseNS: int64(t.closing.Total()),
		ProducerWaitNS: t.producerWait.Load() / int64(max(1, t.producers)),
		WriterWaitNS:   t.writerWait.Load() / int64(max(1, t.writers)),
		TotalNS:        int64(t.total)}
	p.Derive()
	return p
}
