package plainio

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// sweep is a queue-depth sweep: plain I/O of the objects of its fileSet in short steps. Each step has
// twice as many requests in flight as the step before. It ends early if the room for files or the memory
// for buffers is used up. It has no steps if the tier takes no time.
//
// The bytes of a step count at completion, see mean. Requests in flight at the end of a step complete
// before the next step starts. Files are flushed as in a run. Because a step is short, differences of a
// few percent are noise.
type sweep struct {
	*mover
	fileSet      // the objects to read and the room for new objects, which stay in the tier
	inFlight int // requests in flight in the first step
	steps    int // maximum number of steps
	// A step ends after bytes or after time, whichever comes first.
	bytes int64
	time  time.Duration
}

// storeFactor is the factor for the length of a step on an object store. Its requests are whole objects,
// and a request to a distant store takes some hundred milliseconds.
const storeFactor = 4

// most returns the number of requests in flight in the last step. BufferBound limits the buffers.
func (c *sweep) most() int {
	n := c.inFlight
	for range c.steps - 1 {
		if c.holds() && int64(2*n)*c.chunk > c.bench.BufferBound() {
			break
		}
		n *= 2
	}
	return n
}

// run runs the steps until one is enough, and returns the completed steps.
func (c *sweep) run(ctx context.Context, enough func([]result.SweepStep) bool) (
	steps []result.SweepStep, err error) {
	for n, most := c.inFlight, c.most(); n <= most; n *= 2 {
		if c.mix.share < 1 && int64(n)*c.size > c.room.Load() {
			break
		}
		m, err := c.step(ctx, n, len(steps)+1)
		if err != nil || m.took <= 0 {
			return steps, err
		}
		steps = append(steps, result.SweepStep{InFlight: n, NS: int64(m.took),
			Read: m.rate(tiers.Read), Write: m.rate(tiers.Write)})
		if enough(steps) {
			break
		}
	}
	return steps, nil
}

// step runs step k with n streams. Each stream has a buffer and one request in flight.
func (c *sweep) step(ctx context.Context, n, k int) (*measurement, error) {
	l, err := c.buffers(ctx, n, c.chunk)
	if err != nil {
		return nil, err
	}
	c.states = seedWorkers(c.bench.Seed, k<<16, n)
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	m, length := newMeasurement(c.bench.Clock, n), c.time
	if c.plain == nil { // an object that is cut has moved nothing
		m.ended = func() { cut(errEnough) }
		length *= storeFactor
	}
	m.clock.At(m.begun+length, m.end)
	var moved atomic.Int64
	err = c.bench.Concurrently(ctx, n, func(ctx context.Context, i int) error {
		for !m.over.Load() {
			op, o, from, ok := c.next(c.bench, i)
			if !ok {
				m.end()
				break
			}
			err := c.transfer(ctx, l.bufs[i], op, o, from, func(chunk tiers.Chunk) bool {
				if m.count(op, i, chunk) && moved.Add(chunk.Bytes) >= c.bytes {
					m.end()
				}
				return !m.over.Load()
			})
			if err != nil && (c.plain != nil || context.Cause(ctx) != errEnough) {
				return err
			}
		}
		return nil
	})
	m.end()
	return m, errors.Join(err, l.free())
}
