package checkpoint

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// pipeline moves the bytes of checkpoints from producers to the tier. A producer fills a free buffer
// with a chunk. A writer of the chunk's line writes it. The buffer is free again when the tier has
// completed the write. If there are buffers for all chunks, prepare can fill them before the writes.
type pipeline struct {
	clock     clock.Clock
	fill      func(buf []byte, o tiers.Object, off int64)
	chunk     int64
	producers int
	writers   int  // per line
	before    bool // prepare generates the chunks, before start
	lines     []*line
	free      chan *slot // free buffers, each with the chunk to generate; has capacity for all

	// Over all checkpoints: the first line has sums over the threads in ns. The second has the times in
	// which at least one thread was at it.
	generation, producerWait, writerWait atomic.Int64
	generating, io, closing              clock.Busy
	chunks                               atomic.Int64
	total                                time.Duration // duration of the checkpoints
}

// slot is a buffer with the chunk that it holds or will hold.
type slot struct {
	line  *line
	buf   tiers.Buffer
	o     tiers.Object
	chunk int64   // its number in the file
	full  []*slot // the generated chunks of its file, see line
	io    tiers.IO
	back  chan struct{}
	stuck bool // the tier has not completed the request and owns the buffer
}

// line writes the files of one accelerator, one file at a time. All lines share the producers.
type line struct {
	p     *pipeline
	slots []*slot

	// The current file:
	o     tiers.Object
	ctx   context.Context // its end ends the waits for chunks
	given atomic.Int64    // chunks given to producers
	busy  *clock.Busy     // the time with a write or the flush in flight
	done  func(tiers.Chunk)
	late  bool // the bytes count at the flush
	// completing: the flush of the file, or the completion of the object, is in progress.
	completing bool
	parts      int64 // acknowledged parts of an object

	mu     sync.Mutex
	change *sync.Cond         // wakes the waits for a chunk: a chunk is generated, or ctx has ended
	full   []*slot            // generated chunks by number, until they are written
	ready  map[string][]*slot // full of each file, by its key, if prepare has generated all
	begun  []bool             // by number: whether an object store has read from the chunk
}

// add adds a line with the buffers of an accelerator. They may be larger than a chunk.
func (p *pipeline) add(buffers []tiers.Buffer) {
	l := &line{p: p}
	l.change = sync.NewCond(&l.mu)
	for _, b := range buffers {
		b.B = b.B[:p.chunk]
		s := &slot{line: l, buf: b, back: make(chan struct{}, 1)}
		s.io.Done = func(*tiers.IO) { s.back <- struct{}{} }
		l.slots = append(l.slots, s)
	}
	p.lines = append(p.lines, l)
}

// start starts the producers of a checkpoint. end ends them. A producer without a buffer waits until then,
// also after the last chunk. With many buffers this is its only wait.
func (p *pipeline) start(ctx context.Context) (end func()) {
	buffers := 0
	for _, l := range p.lines {
		buffers += len(l.slots)
	}
	p.free = make(chan *slot, buffers)
	ctx, cancel := context.WithCancel(ctx)
	var producers sync.WaitGroup
	for range p.producers {
		producers.Go(func() { p.produce(ctx) })
	}
	return func() {
		cancel()
		producers.Wait()
	}
}

// produce fills free buffers until ctx ends.
func (p *pipeline) produce(ctx context.Context) {
	for {
		from := p.clock.Now()
		var s *slot
		select {
		case s = <-p.free:
		case <-ctx.Done():
		}
		now := p.clock.Now()
		p.producerWait.Add(int64(now - from))
		if s == nil {
			return
		}
		p.generate(s, now)
	}
}

// generate fills the buffer of a slot.
func (p *pipeline) generate(s *slot, now time.Duration) {
	p.generating.Enter(now)
	p.fill(s.buf.B, s.o, s.chunk*p.chunk)
	ended := p.clock.Now()
	p.generating.Exit(ended)
	p.generation.Add(int64(ended - now))
	s.line.mu.Lock()
	s.full[s.chunk] = s
	s.line.change.Broadcast()
	s.line.mu.Unlock()
}

// prepare generates all chunks of the files of a checkpoint. Each line needs a buffer for each of its chunks.
func (p *pipeline) prepare(ctx context.Context, filesOf func(line int) []tiers.Object) error {
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(p.producers)
	for i, l := range p.lines {
		l.ready = make(map[string][]*slot)
		free := l.slots
		for _, o := range filesOf(i) {
			full := make([]*slot, Chunks(o.Size, p.chunk))
			l.ready[o.Key] = full
			for chunk := range full {
				s := free[0]
				free = free[1:]
				s.o, s.chunk, s.full = o, int64(chunk), full
				group.Go(func() error {
					if each.Err() == nil {
						p.generate(s, p.clock.Now())
					}
					return context.Cause(each)
				})
			}
		}
	}
	return group.Wait()
}

// Chunks returns the number of chunks of a file.
func Chunks(size, chunk int64) int64 { return (size + chunk - 1) / chunk }

// begin makes o the current file. Unless prepare has generated the file, begin gives the line's buffers to
// the producers. stop has to be called at the file's end.
func (l *line) begin(ctx context.Context, o tiers.Object) (chunks int64, stop func() bool) {
	chunks = Chunks(o.Size, l.p.chunk)
	full, ready := l.ready[o.Key]
	if ready {
		l.given.Store(chunks)
	} else {
		l.given.Store(0)
		full = make([]*slot, chunks)
	}
	l.mu.Lock() // an abandoned attempt for the previous object may still call Fill
	l.o, l.ctx, l.parts = o, ctx, 0
	l.full, l.begun = full, make([]bool, chunks)
	l.mu.Unlock()
	for _, s := range l.slots {
		if !ready {
			l.give(s)
		}
	}
	return chunks, context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.change.Broadcast()
	})
}

// give returns a buffer to the producers for the next chunk, if there is one.
func (l *line) give(s *slot) {
	if chunk := l.given.Add(1) - 1; chunk < int64(len(l.full)) {
		s.o, s.chunk, s.full = l.o, chunk, l.full
		l.p.free <- s
	}
}

// take waits until a chunk is generated. It returns nil if the chunk is already written. Callers hold mu.
func (l *line) take(chunk int64) (*slot, error) {
	from := l.p.clock.Now()
	for l.full[chunk] == nil && !l.begun[chunk] && l.ctx.Err() == nil {
		l.change.Wait()
	}
	l.p.writerWait.Add(int64(l.p.clock.Now() - from))
	return l.full[chunk], context.Cause(l.ctx)
}

// write writes a file's chunks to the tier. It returns when all writes are completed, or with the first
// error. After an error the line is unusable, because the tier may own its buffers.
func (l *line) write(ctx context.Context, o tiers.Object, to tiers.Submitter) error {
	group, each := errgroup.WithContext(ctx)
	chunks, stop := l.begin(each, o)
	defer stop()
	var next atomic.Int64
	// Each writer is a goroutine with one write in flight, so that its waiting time is known.
	for range min(int64(l.p.writers), chunks) {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < chunks; i = next.Add(1) - 1 {
				l.mu.Lock()
				s, err := l.take(i)
				l.mu.Unlock()
				if err == nil {
					err = l.put(each, s, to)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}

// put writes one chunk and waits for its completion, for at most tiers.Grace once ctx has ended.
func (l *line) put(ctx context.Context, s *slot, to tiers.Submitter) error {
	// The last chunk is shorter than its buffer. Direct I/O writes the rest of the buffer as padding.
	s.io.Off = s.chunk * l.p.chunk
	s.io.N = int(min(l.p.chunk, l.o.Size-s.io.Off))
	s.io.Buf = s.buf
	s.io.Buf.B = s.buf.B[:s.io.N]
	s.io.Begun, s.io.Ended = 0, 0
	submitted := l.p.clock.Now()
	l.enter(submitted)
	to.Submit(&s.io)
	// A request cannot be cancelled. Until its completion its buffer is the device's.
	if _, ok := tiers.Await(ctx, s.back); !ok {
		s.stuck = true
		return context.Cause(ctx)
	}
	now := l.p.clock.Now()
	l.exit(now)
	if s.io.Err != nil {
		return s.io.Err
	}
	c := tiers.Chunk{Op: tiers.Write, Bytes: int64(s.io.N), Begun: s.io.Begun, Ended: s.io.Ended,
		Submitted: submitted, Completed: now}
	if c.Ended == 0 { // the tier does not measure the request
		c.Begun, c.Ended = submitted, now
	}
	// Through the page cache the bytes have not reached the device yet: the flush counts them, and only
	// the flush is in flight.
	if !l.late {
		l.done(c)
	}
	l.p.chunks.Add(1)
	l.give(s)
	return nil
}

// commit flushes a file. It does not repeat a flush that failed: the kernel has dropped the dirty pages,
// and the next fsync would report success.
func (l *line) commit(ctx context.Context, o tiers.Object, w tiers.Writer) error {
	c := tiers.Chunk{Op: tiers.Write, Flush: true, Begun: l.p.clock.Now()}
	l.beginCompletion()
	err := w.Commit(ctx)
	l.endCompletion()
	if err != nil {
		return err
	}
	now := l.p.clock.Now()
	c.Submitted, c.Ended, c.Completed = c.Begun, now, now
	if l.late {
		c.Bytes = o.Size
	}
	l.done(c)
	return nil
}

// beginCompletion starts the busy time of a flush, or of the step in which a store completes an object.
func (l *line) beginCompletion() {
	if l.completing {
		return
	}
	now := l.p.clock.Now()
	l.enter(now)
	l.p.closing.Enter(now)
	l.completing = true
}

// endCompletion ends the busy time that beginCompletion has started, if any.
func (l *line) endCompletion() {
	if !l.completing {
		return
	}
	now := l.p.clock.Now()
	l.p.closing.Exit(now)
	l.exit(now)
	l.completing = false
}

func (l *line) enter(now time.Duration) {
	l.busy.Enter(now)
	l.p.io.Enter(now)
}

func (l *line) exit(now time.Duration) {
	l.busy.Exit(now)
	l.p.io.Exit(now)
}

// report returns the times for the result. Waits are means over the threads.
func (p *pipeline) report(lines int) *result.Pipeline {
	r := &result.Pipeline{Producers: p.producers, Writers: p.writers * lines, ChunkBytes: p.chunk,
		Before: p.before, Chunks: p.chunks.Load(), GenerationNS: p.generation.Load(),
		GenerationWallNS: int64(p.generating.Total()), IONS: int64(p.io.Total()),
		CloseNS:        int64(p.closing.Total()),
		ProducerWaitNS: p.producerWait.Load() / int64(max(1, p.producers)),
		WriterWaitNS:   p.writerWait.Load() / int64(max(1, p.writers*lines)),
		TotalNS:        int64(p.total)}
	r.Derive()
	return r
}
