package plainio

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads/users"
)

// sweepConfig has the settings of a queue-depth sweep: plain I/O on a tier in short steps. Each step has
// twice as many requests in flight as the step before.
type sweepConfig struct {
	level cache.Level
	// objects are the objects to read. They stay in the tier during the sweep. The seed determines their
	// order and the chunk at which a read starts. Empty if readShare is 0.
	objects   []tiers.Object
	readShare float64 // share of reads in the bytes, 0 to 1
	seed      uint64

	inFlight int // requests in flight in the first step, at least 1
	steps    int // maximum number of steps
	// A step ends after bytes or after time, whichever comes first. Both are positive.
	bytes int64
	time  time.Duration

	// The sweep writes new files of at most fileSize bytes, and at most capacity bytes in total. The
	// files are smaller if capacity has no room for two files of each stream. They stay in the tier.
	fileSize, capacity int64
}

// sweep is a queue-depth sweep in progress. It ends early if the capacity for files or the memory for
// buffers is used up. It has no steps if the tier takes no time.
//
// The bytes of a step count at completion, see mean. Requests in flight at the end of a step complete
// before the next step starts. Files are flushed as in a run. Because a step is short, differences of a
// few percent are noise.
type sweep struct {
	*mover
	sweepConfig
	size int64 // bytes of a file
	// enough, if not nil, returns true to end the sweep after a step.
	enough func([]result.SweepStep) bool
	drawn  int // steps so far: each has its own random draws

	mu   sync.Mutex
	used int64 // bytes of the capacity
}

func newSweep(e *kvbench.Env, cfg sweepConfig) (*sweep, error) {
	if cfg.inFlight < 1 || cfg.bytes < 1 || cfg.time <= 0 {
		return nil, fmt.Errorf("a sweep from %d in flight, in steps of %d bytes and %s: all must "+
			"be positive", cfg.inFlight, cfg.bytes, cfg.time)
	}
	if cfg.readShare > 0 && len(cfg.objects) == 0 {
		return nil, fmt.Errorf("nothing lies in the %s tier to be read", cfg.level.Kind)
	}
	m, err := newMover(e, cfg.level, fmt.Sprint("sweep/", e.Clock.Now(), "/"))
	if err != nil {
		return nil, err
	}
	c := &sweep{mover: m, sweepConfig: cfg}
	c.size = c.sizeOf(cfg.capacity / int64(2*c.most()))
	if m.plain == nil { // a cut object has moved nothing
		c.time *= slower
	}
	return c, nil
}

// slower is the factor for the length of a step on an object store. Its requests are whole objects, and
// a request to a distant store takes some hundred milliseconds.
const slower = 4

// sizeOf rounds a size down to whole requests, at least one request and at most fileSize. A slot holds
// no more.
func (c *sweep) sizeOf(size int64) int64 {
	size = c.wholeChunks(min(size, c.fileSize, c.largest()))
	if c.fileSize > 0 {
		size = min(size, c.fileSize)
	}
	return size
}

// most returns the number of requests in flight in the last step. BufferBound limits the buffers.
func (c *sweep) most() int {
	n := c.inFlight
	for range c.steps - 1 {
		if c.holds() && int64(2*n)*c.chunk > c.env.BufferBound() {
			break
		}
		n *= 2
	}
	return n
}

// run runs the steps and returns the completed steps.
func (c *sweep) run(ctx context.Context) (steps []result.SweepStep, err error) {
	most := c.most()
	for n := c.inFlight; n <= most; n *= 2 {
		if c.readShare < 1 && c.used+int64(n)*c.size > c.capacity {
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
		steps = append(steps, result.SweepStep{InFlight: n, NS: int64(r.took),
			Read: mean(r.tallies[tiers.Read], r.took), Write: mean(r.tallies[tiers.Write], r.took)})
		if c.enough != nil && c.enough(steps) {
			break
		}
	}
	return steps, nil
}

// sweepStep is one step of a sweep, with a stream for each request in flight.
type sweepStep struct {
	*sweep
	measurement
	mix     mix
	moved   atomic.Int64
	tallies [tiers.NumOps][]tally // of each stream
}

func (c *sweep) step(ctx context.Context, bufs []leased) (*sweepStep, error) {
	c.drawn++
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	r := &sweepStep{sweep: c, mix: mix{share: c.readShare},
		measurement: newMeasurement(c.env.Clock)}
	for op := range r.tallies {
		r.tallies[op] = make([]tally, len(bufs))
	}
	if c.plain == nil { // cancel the objects in flight at the end of the step
		r.ended = func() { cut(errEnough) }
	}
	r.clock.At(r.begun+c.time, r.end)
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

// count returns the counter for one direction of stream i. The counter ends the step after bytes.
func (r *sweepStep) count(op tiers.Op, i int) counter {
	return func(c tiers.Chunk) (more bool) {
		if r.over.Load() {
			return false
		}
		r.tallies[op][i].add(c.Done-r.begun, c.Bytes)
		if r.moved.Add(c.Bytes) >= r.bytes {
			r.end()
		}
		return !r.over.Load()
	}
}

// stream runs stream i of n: it moves object after object with one buffer. The first written object of
// each stream has a different length, so that the streams do not flush at the same time.
func (r *sweepStep) stream(ctx context.Context, buf leased, i, n int) error {
	draws := users.NewStream(r.seed, r.drawn<<16+i)
	size := r.sizeOf(r.size * int64(i+1) / int64(n))
	for k := int64(0); !r.over.Load(); k++ {
		var old tiers.Object
		var from int64
		if len(r.objects) > 0 {
			old = r.objects[draws.Between(users.DrawObject, 2*k, 0, len(r.objects)-1)]
			chunks := int((old.Size-1)/r.request(old.Size)) + 1
			from = r.chunk * int64(draws.Between(users.DrawObject, 2*k+1, 0, chunks-1))
		}
		var err error
		switch op := r.mix.next(old.Size-from, size); {
		case op == tiers.Read:
			err = r.read(ctx, buf, old, from, r.count(op, i))
		case r.reserve(size):
			err = r.write(ctx, buf, r.object(size), r.count(op, i))
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

// reserve reserves capacity for a file, if there is enough.
func (c *sweep) reserve(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used+size > c.capacity {
		return false
	}
	c.used += size
	return true
}
