package plainio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads/users"
)

// Climb measures plain I/O on a tier, step by step, as the Ladder describes: it is a
// kvbench.Climber. It returns the completed steps: fewer than requested where the capacity for
// files or the memory for buffers ends, and none where the tier takes no time. Of the run it needs
// only the clock, the content and the chunk size, so it can come before a window, or after one when
// all workers have ended; in virtual time, too.
//
// Bytes count as requests complete, from the start of all streams to the end of the step, the
// middle of that time most (see mean). Requests in flight at the end complete before the next step
// begins. Files are flushed as in a run. So a step shows what a run would have moved with
// as many in flight all the time. It is short: differences of a few percent are noise.
func Climb(ctx context.Context, e *kvbench.Env, l kvbench.Ladder) (steps []result.Rung, err error) {
	return climbIn(ctx, e, l, nil)
}

// climbIn is Climb with the requests of a routine inside its files; nil: with files of its own.
func climbIn(ctx context.Context, e *kvbench.Env, l kvbench.Ladder, within *Blocks) (
	steps []result.Rung, err error) {
	c, err := newClimb(e, l, within)
	if err != nil {
		return nil, fmt.Errorf("climb a ladder of plain I/O: %w", err)
	}
	if err = c.spare(ctx); err == nil {
		if l.Begins != nil {
			l.Begins()
		}
		steps, err = c.climb(ctx)
		if l.Climbed != nil {
			l.Climbed()
		}
	}
	return steps, errors.Join(err, c.remove(ctx))
}

// spare writes the objects to read concurrently and in large requests, whatever the sweep's request
// size: page by page it would take longer than all steps.
func (c *climb) spare(ctx context.Context) error {
	m, err := newMover(c.env, c.Level, c.name)
	if err != nil || len(c.Spare) == 0 {
		return err
	}
	m.chunk = max(m.chunk, fieldFill)
	l, err := m.buffers(ctx, min(len(c.Spare), fieldFillers), m.chunk)
	if err != nil {
		return err
	}
	err = fill(ctx, c.env, len(c.Spare), l.len(), func(ctx context.Context, w, i int) error {
		err := m.write(ctx, l.bufs[w], c.Spare[i], func(tiers.Chunk) bool { return true })
		if err == nil {
			c.wrote(c.Spare[i])
		}
		return err
	})
	if err = errors.Join(err, l.free()); err != nil {
		return fmt.Errorf("something to read could not be written: %w", err)
	}
	c.Objects = append(slices.Clip(c.Objects), c.Spare...)
	return nil
}

// climb is a Ladder in flight.
type climb struct {
	*mover
	kvbench.Ladder
	within *Blocks
	size   int64 // of the files
	// enough ends the sweep before its last step; nil: all steps run.
	enough func([]result.Rung) bool
	steps  int // so far, so that the draws of each are its own

	mu    sync.Mutex
	used  int64 // of the room
	files []tiers.Object
}

func newClimb(e *kvbench.Env, l kvbench.Ladder, within *Blocks) (*climb, error) {
	if l.InFlight < 1 || l.Bytes < 1 || l.Time <= 0 {
		return nil, fmt.Errorf("from %d in flight, in rungs of %d bytes and %s: all must be "+
			"positive", l.InFlight, l.Bytes, l.Time)
	}
	if within == nil && l.ReadShare > 0 && len(l.Objects)+len(l.Spare) == 0 {
		return nil, fmt.Errorf("nothing lies in the %s tier to be read", l.Level.Kind)
	}
	m, err := newMover(e, l.Level, fmt.Sprint("ladder/", e.Clock.Now(), "/"))
	if err != nil {
		return nil, err
	}
	c := &climb{mover: m, Ladder: l, within: within}
	c.size = c.fileSize(l.Room / int64(2*c.most()))
	if m.plain == nil { // which would say nothing of an object that is cut
		c.Time *= slower
	}
	return c, nil
}

// slower is the factor by which a step takes longer on a tier that streams: its requests are whole
// objects, and a request to a distant store takes some hundred milliseconds.
const slower = 4

// fileSize rounds a size to whole requests, at least one, but never more than the Ladder's size: a
// tier of slots may store no more.
func (c *climb) fileSize(size int64) int64 {
	size = c.wholeChunks(min(size, c.FileSize, c.largest()))
	if c.FileSize > 0 {
		size = min(size, c.FileSize)
	}
	return size
}

// most is the number in flight in the last step, whose buffers are bounded as a run's are.
func (c *climb) most() int {
	n := c.InFlight
	for range c.Rungs - 1 {
		if c.holds() && int64(2*n)*c.chunk > c.env.BufferBound() {
			break
		}
		n *= 2
	}
	return n
}

func (c *climb) climb(ctx context.Context) (steps []result.Rung, err error) {
	most := c.most()
	for n := c.InFlight; n <= most; n *= 2 {
		if c.within == nil && c.ReadShare < 1 && c.used+int64(n)*c.size > c.Room {
			break
		}
		l, err := c.buffers(ctx, n, c.chunk)
		if err != nil {
			return nil, err
		}
		r, err := c.step(ctx, l.bufs)
		if err = errors.Join(err, l.free()); err != nil || r.took <= 0 {
			return steps, err
		}
		steps = append(steps, result.Rung{InFlight: n, NS: int64(r.took),
			Read: mean(r.tallies[tiers.Read], r.took), Write: mean(r.tallies[tiers.Write], r.took)})
		if c.enough != nil && c.enough(steps) {
			break
		}
	}
	return steps, nil
}

// remove deletes the written files, also when ctx has ended.
func (c *climb) remove(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.files) == 0 {
		return nil
	}
	return c.owner().Remove(context.WithoutCancel(ctx), c.files...)
}

// sweepStep is one step of a sweep, with a stream for each request in flight.
type sweepStep struct {
	*climb
	measurement
	mix     mix
	moved   atomic.Int64
	tallies [tiers.NumOps][]tally // of each stream
}

func (c *climb) step(ctx context.Context, bufs []leased) (*sweepStep, error) {
	c.steps++
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	r := &sweepStep{climb: c, mix: mix{share: c.ReadShare},
		measurement: newMeasurement(c.env.Clock)}
	for op := range r.tallies {
		r.tallies[op] = make([]tally, len(bufs))
	}
	if c.plain == nil { // its requests in flight, whole objects, end by ctx
		r.ended = func() { cut(errEnough) }
	}
	r.clock.At(r.begun+c.Time, r.end)
	err := concurrently(ctx, c.env, len(bufs), func(ctx context.Context, i int) error {
		err := r.stream(ctx, bufs[i], i, len(bufs))
		if c.plain == nil && r.over.Load() && context.Cause(ctx) == errEnough {
			return nil
		}
		return err
	})
	r.end()
	return r, err
}

// count counts one direction of a stream and ends the step when it has moved its bytes.
func (r *sweepStep) count(op tiers.Op, i int) counter {
	return func(c tiers.Chunk) (more bool) {
		if r.over.Load() {
			return false
		}
		r.tallies[op][i].add(c.Done-r.begun, c.Bytes)
		if r.moved.Add(c.Bytes) >= r.Bytes {
			r.end()
		}
		return !r.over.Load()
	}
}

// stream is stream i of n: object after object, through one buffer. The first object of each stream
// is shorter by a different part, so that flushes of many streams do not coincide.
func (r *sweepStep) stream(ctx context.Context, buf leased, i, n int) error {
	draws := users.NewStream(r.Seed, r.steps<<16+i)
	if r.within != nil {
		next := r.within.anywhere(draws, new(int64), r.within.Size, r.over.Load)
		return buf.pass(ctx, r.env.Clock, &tiers.IO{}, next, r.count(r.within.Op, i))
	}
	size := r.fileSize(r.size * int64(i+1) / int64(n))
	for k := int64(0); !r.over.Load(); k++ {
		var old tiers.Object
		var from int64
		if len(r.Objects) > 0 {
			old = r.Objects[draws.Between(users.DrawObject, 2*k, 0, len(r.Objects)-1)]
			chunks := int((old.Size-1)/r.request(old.Size)) + 1
			from = r.chunk * int64(draws.Between(users.DrawObject, 2*k+1, 0, chunks-1))
		}
		var err error
		switch op := r.mix.next(old.Size-from, size); {
		case op == tiers.Read:
			err = r.read(ctx, buf, old, from, r.count(op, i))
		case r.take(size):
			o := r.object(size)
			if err = r.write(ctx, buf, o, r.count(op, i)); err == nil {
				r.wrote(o)
			}
			size = r.size
		default:
			r.end()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take reserves capacity for a file, if there is enough.
func (c *climb) take(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used+size > c.Room {
		return false
	}
	c.used += size
	return true
}

// wrote notes an object for remove.
func (c *climb) wrote(o tiers.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = append(c.files, o)
}
