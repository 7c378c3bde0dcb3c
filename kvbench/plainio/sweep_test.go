package plainio

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/filetier"
	"kvbench/tiers/sim"
	"kvbench/tiers/spread"
	"kvbench/tiers/tiertest"
)

// once is a routine that does one thing, before its window, on the test's goroutine.
type once func(ctx context.Context, b *Bench) error

func (f once) Prepare(ctx context.Context, b *Bench) error { return f(ctx, b) }

func (f once) Step(_ context.Context, b *Bench, _ int) error {
	b.Done(0, tiers.Storage, tiers.Read, tiers.Object{Size: 1}, tiers.Timing{}, 0, 0)
	return nil
}

// inTrial calls f in a trial in virtual time over a tier.
func inTrial(t *testing.T, make func(clock.Clock) tiers.Files, f func(ctx context.Context, b *Bench)) {
	tiertest.OneThread(t)
	t.Helper()
	v := clock.NewVirtual()
	cfg := virtual(v, make(v), 1<<40, 1)
	cfg.Limit = 1
	_, err := runPlain(t.Context(), cfg, once(func(ctx context.Context, b *Bench) error {
		f(ctx, b)
		return nil
	}))
	require.NoError(t, err)
}

// drive is one with latency, so that bandwidth needs requests in flight: with n of them it moves n
// pages in the time of one, up to its bandwidth of 16.
func drive(t *testing.T) func(c clock.Clock) tiers.Files {
	m := tiers.DeviceModel{Read: 16 * page * 1000, Write: 8 * page * 1000,
		ReadLatency: time.Millisecond, WriteLatency: time.Millisecond, Parallelism: 1000}
	return func(c clock.Clock) tiers.Files { return sim.NewDevice(m, "a drive", c) }
}

// newSweep makes a sweep over the storage tier of a trial, with room for any number of files.
func newSweep(t *testing.T, b *Bench, share float64, objects ...tiers.Object) *sweep {
	m, err := newMover(b, b.Levels[0])
	require.NoError(t, err)
	c := &sweep{mover: m, bytes: 1 << 40, time: time.Second}
	c.level, c.objects, c.mix.share, c.part = b.Levels[0], objects, share, page
	c.room.Store(1 << 40)
	return c
}

// swept runs a sweep with a number of steps from first in flight on.
func swept(ctx context.Context, t *testing.T, c *sweep, first, steps int) []result.SweepStep {
	c.inFlight, c.steps = first, steps
	all, err := c.run(ctx, func([]result.SweepStep) bool { return false })
	require.NoError(t, err)
	return all
}

func TestASweepFindsWhatMoreInFlightWouldMove(t *testing.T) {
	objects := []tiers.Object{{Key: "a", Size: 100 * page}, {Key: "b", Size: 100 * page}}
	inTrial(t, drive(t), func(ctx context.Context, b *Bench) {
		steps := swept(ctx, t, newSweep(t, b, 1, objects...), 1, 7)
		require.Len(t, steps, 7)
		for i, r := range steps {
			n := 1 << i
			assert.Equal(t, n, r.InFlight)
			assert.Zero(t, r.Write)
			// n requests take the latency and the passing of one, or the bandwidth of the medium.
			want := min(float64(n)*page/(1.0625*1e-3), 16*page*1000)
			assert.InEpsilon(t, want, r.Read, 0.02, "%d in flight", n)
		}
		assert.Equal(t, steps, swept(ctx, t, newSweep(t, b, 1, objects...), 1, 7))

		c := newSweep(t, b, 1, objects...)
		c.bytes = 320 * page
		begun := b.Clock.Now()
		steps = swept(ctx, t, c, 32, 1)
		assert.InEpsilon(t, 16*page*1000, steps[0].Read, 0.06)
		assert.Less(t, b.Clock.Now()-begun, 30*time.Millisecond, "bounded by its bytes")

		c = newSweep(t, b, 0.75, tiers.Object{Key: "a", Size: 10 * page})
		c.size = 10 * page
		steps = swept(ctx, t, c, 32, 1)
		assert.InDelta(t, 0.75, steps[0].Read/steps[0].Rate(), 0.05)
		// One medium for both: 0.75 of the bytes at 16, 0.25 at 8.
		assert.InEpsilon(t, page*1000/(0.75/16+0.25/8), steps[0].Rate(), 0.05)

		over, cancel := context.WithCancelCause(ctx)
		cancel(assert.AnError)
		_, err := newSweep(t, b, 1, objects...).step(over, 1, 1)
		require.ErrorIs(t, err, assert.AnError)
		_, err = newMover(b, cache.Level{Kind: tiers.Storage})
		require.ErrorContains(t, err, "takes no time")
	})
	inTrial(t, func(clock.Clock) tiers.Files { return tiertest.NewNull() },
		func(ctx context.Context, b *Bench) {
			c := newSweep(t, b, 0)
			c.size, c.bytes = page, 1<<10
			assert.Empty(t, swept(ctx, t, c, 1, 3), "nothing took time")
		})
}

// flushing notes when objects are committed and how many lie there.
type flushing struct {
	tiers.Files
	clock   clock.Clock
	mu      sync.Mutex
	flushes map[time.Duration]int
	now     int64
	most    int64
	aborted int
	takes   time.Duration // a flush; a third of it a removal
	fails   error
}

func (f *flushing) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += objs[0].Size
	f.most = max(f.most, f.now)
	w, err := f.Files.Create(ctx, objs...)
	return &flushingWriter{w, f}, err
}

func (f *flushing) Remove(ctx context.Context, objs ...tiers.Object) error {
	if err := f.clock.Sleep(ctx, f.takes/3); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objs {
		f.now -= o.Size
	}
	return f.Files.Remove(ctx, objs...)
}

type flushingWriter struct {
	tiers.Writer
	f *flushing
}

func (w *flushingWriter) Commit(ctx context.Context) error {
	if err := w.f.clock.Sleep(ctx, w.f.takes); err != nil {
		return err
	}
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	w.f.flushes[w.f.clock.Now()]++
	if w.f.fails != nil {
		return w.f.fails
	}
	return w.Writer.Commit(ctx)
}

func (w *flushingWriter) Abort() error {
	w.f.aborted++
	return w.Writer.Abort()
}

func TestASweepWritesWithinItsCapacity(t *testing.T) {
	var tier *flushing
	inTrial(t, func(c clock.Clock) tiers.Files {
		tier = &flushing{Files: drive(t)(c), clock: c, flushes: map[time.Duration]int{}}
		return tier
	}, func(ctx context.Context, b *Bench) {
		c := newSweep(t, b, 0)
		c.time, c.size = 100*time.Millisecond, 20*page
		c.room.Store(3000 * page)
		steps := swept(ctx, t, c, 4, 3)
		require.Len(t, steps, 3)
		for _, r := range steps {
			assert.Zero(t, r.Read)
			assert.InEpsilon(t, min(float64(r.InFlight)*page/1.125e-3, 8*page*1000), r.Write, 0.15,
				"%d in flight", r.InFlight)
		}
		assert.Zero(t, tier.aborted, "files that the end of a step cut short stay until the end")
		assert.LessOrEqual(t, tier.most, int64(3000*page))

		// Steadily, not all at once.
		tier.flushes = map[time.Duration]int{}
		c.time = time.Second
		c.room.Store(3000 * page)
		swept(ctx, t, c, 16, 1)
		for at, n := range tier.flushes {
			assert.LessOrEqual(t, n, 4, "of 16 streams flushed at %s", at)
		}

		c.room.Store(10 * page)
		assert.Empty(t, swept(ctx, t, c, 16, 1), "no capacity for sixteen files")

		c.room.Store(1 << 30)
		tier.fails = syscall.EIO
		_, err := c.step(ctx, 16, 1)
		require.ErrorIs(t, err, syscall.EIO)
	})
}

// On a filesystem of large blocks small requests are refused, before anything is written.
func TestRequestsSmallerThanABlockOfTheFilesystem(t *testing.T) {
	v := clock.NewVirtual()
	tier := drive(t)(v)
	a := &asking{Files: tier, traits: tier.Traits()}
	a.traits.Align = 16 << 10
	for size, refused := range map[int64]bool{page: true, 24 << 10: true, 32 << 10: false} {
		cfg := virtual(v, a, 1<<40, 1).lasting(time.Second)
		cfg.Storage.Chunk = int(size)
		a.asked = nil
		_, err := runPlain(t.Context(), cfg, &Ceiling{ReadShare: 1, InFlight: 1,
			Footprint: 1 << 20})
		if !refused {
			require.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, "direct I/O takes multiples of 16384 bytes here")
		assert.Empty(t, a.asked)
	}
}

// Sixteen files in several directories are spread evenly, unlike by a hash.
func TestFilesLieInAllDirectoriesAlike(t *testing.T) {
	for _, of := range []int{1, 2, 3, 4, 8} {
		var parts []spread.Part
		for range of {
			parts = append(parts, spread.Part{Tier: tiertest.Files(t, filetier.Config{}),
				Room: 1 << 30})
		}
		tier := spread.New(parts...)
		has, keys := make([]int, of), map[string]bool{}
		for n := range int64(48) {
			key := evenly(tier, plainKeys, n)
			at, _ := tier.Home(key)
			has[at]++
			keys[key] = true
		}
		assert.Len(t, keys, 48)
		assert.Equal(t, 48/of, slices.Min(has))
	}
	assert.Equal(t, "plain/7", evenly(tiertest.NewNull(), plainKeys, 7))
}

// A storage that moves bytes in slices shows its rate, whatever part of a slice is in flight when a
// measurement ends.
func TestAMeanLosesNothingInFlight(t *testing.T) {
	const slice, bytes = 100 * time.Millisecond, 20 << 20
	apart := 0.0
	for took := 2 * slice; took <= 10*slice; took += 7 * time.Millisecond {
		all := make([]tally, 2) // one of them stays empty
		total := 0
		for at := slice; at <= took; at += slice {
			all[0].add(at-1, bytes)
			total += bytes
		}
		assert.InEpsilon(t, bytes/slice.Seconds(), mean(all, took), 0.04, took)
		apart = max(apart, 1-float64(total)/took.Seconds()/(bytes/slice.Seconds()))
	}
	assert.Greater(t, apart, 0.3, "as bytes over time have it")
}

// However many times parts have become longer, all bytes are in them, where they belong.
func TestATallyKeepsAllBytes(t *testing.T) {
	tiertest.OneThread(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		all, took, total := make([]tally, 3), time.Duration(0), int64(0)
		step := time.Duration(1 + rnd.Int64N(int64(20*time.Millisecond)))
		for range 5000 {
			took += time.Duration(rnd.Int64N(int64(step)))
			total += 4096
			all[rnd.IntN(len(all))].add(took, 4096)
		}
		sum := int64(0)
		for i := range all {
			for at, bytes := range all[i].bytes {
				sum += bytes
				if bytes != 0 {
					assert.LessOrEqual(t, time.Duration(at)*all[i].part, took)
				}
			}
		}
		assert.Equal(t, total, sum)
		assert.InEpsilon(t, float64(total)/took.Seconds(), mean(all, took), 0.06)
	}
}
