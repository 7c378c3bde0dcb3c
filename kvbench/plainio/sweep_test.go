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

	"kvbench/kvbench"
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
func inTrial(t *testing.T, make func(clock.Clock) tiers.Files,
	f func(ctx context.Context, e *kvbench.Env, l cache.Level)) {
	tiertest.OneThread(t)
	t.Helper()
	v := clock.NewVirtual()
	cfg := virtual(v, make(v), 1<<40, 1)
	cfg.Limit = 1
	_, err := runPlain(t.Context(), cfg, once(func(ctx context.Context, b *Bench) error {
		f(ctx, b.Env, b.Levels[0])
		return nil
	}))
	require.NoError(t, err)
}

// drive is one with latency, so that bandwidth needs requests in flight: with n of them it moves n
// pages in the time of one, up to its bandwidth of 16.
func drive(t *testing.T) func(c clock.Clock) tiers.Files {
	m := tiers.DeviceModel{Read: 16 * page * 1000, Write: 8 * page * 1000,
		ReadLatency: time.Millisecond, WriteLatency: time.Millisecond, Parallelism: 1000}
	require.NoError(t, m.Validate())
	return func(c clock.Clock) tiers.Files { return sim.NewDevice(m, "a drive", c) }
}

// swept makes a sweep and returns its steps.
func swept(ctx context.Context, e *kvbench.Env, cfg sweepConfig) ([]result.SweepStep, error) {
	c, err := newSweep(e, cfg)
	if err != nil {
		return nil, err
	}
	return c.run(ctx)
}

func TestASweepFindsWhatMoreInFlightWouldMove(t *testing.T) {
	inTrial(t, drive(t), func(ctx context.Context, e *kvbench.Env, l cache.Level) {
		objects := []tiers.Object{{Key: "a", Size: 100 * page}, {Key: "b", Size: 70*page - 5}}
		cfg := sweepConfig{level: l, objects: objects, readShare: 1, inFlight: 1, steps: 7,
			bytes: 1 << 40, time: time.Second, seed: 1}
		steps, err := swept(ctx, e, cfg)
		require.NoError(t, err)
		require.Len(t, steps, 7)
		for i, r := range steps {
			n := 1 << i
			assert.Equal(t, n, r.InFlight)
			assert.Zero(t, r.Write)
			// n requests take the latency and the passing of one, or the bandwidth of the medium.
			want := min(float64(n)*page/(1.0625*1e-3), 16*page*1000)
			assert.InEpsilon(t, want, r.Read, 0.02, "%d in flight", n)
		}
		again, err := swept(ctx, e, cfg)
		require.NoError(t, err)
		assert.Equal(t, steps, again)

		cfg.bytes, cfg.inFlight, cfg.steps = 320*page, 32, 1
		begun := e.Clock.Now()
		steps, err = swept(ctx, e, cfg)
		require.NoError(t, err)
		assert.InEpsilon(t, 16*page*1000, steps[0].Read, 0.06)
		assert.Less(t, e.Clock.Now()-begun, 30*time.Millisecond, "bounded by its bytes")

		cfg.readShare, cfg.bytes, cfg.fileSize, cfg.capacity = 0.75, 1<<40, 10*page, 1<<40
		steps, err = swept(ctx, e, cfg)
		require.NoError(t, err)
		assert.InDelta(t, 0.75, steps[0].Read/steps[0].Rate(), 0.05)
		// One medium for both: 0.75 of the bytes at 16, 0.25 at 8.
		assert.InEpsilon(t, page*1000/(0.75/16+0.25/8), steps[0].Rate(), 0.05)
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
	}, func(ctx context.Context, e *kvbench.Env, l cache.Level) {
		cfg := sweepConfig{level: l, inFlight: 4, steps: 3, bytes: 1 << 40, seed: 1,
			time: 100 * time.Millisecond, fileSize: 20 * page, capacity: 3000 * page}
		steps, err := swept(ctx, e, cfg)
		require.NoError(t, err)
		require.Len(t, steps, 3)
		for _, r := range steps {
			assert.Zero(t, r.Read)
			assert.InEpsilon(t, min(float64(r.InFlight)*page/1.125e-3, 8*page*1000), r.Write, 0.15,
				"%d in flight", r.InFlight)
		}
		assert.Zero(t, tier.aborted, "files that the end of a step cut short stay until the end")
		assert.LessOrEqual(t, tier.most, cfg.capacity)

		// Steadily, not all at once.
		tier.flushes = map[time.Duration]int{}
		cfg.inFlight, cfg.steps, cfg.time = 16, 1, time.Second
		_, err = swept(ctx, e, cfg)
		require.NoError(t, err)
		for at, n := range tier.flushes {
			assert.LessOrEqual(t, n, 4, "of 16 streams flushed at %s", at)
		}

		cfg.capacity = 10 * page
		steps, err = swept(ctx, e, cfg)
		require.NoError(t, err)
		assert.Empty(t, steps, "no capacity for sixteen files")

		cfg.capacity, tier.fails = 1<<30, syscall.EIO
		_, err = swept(ctx, e, cfg)
		require.ErrorIs(t, err, syscall.EIO)
	})
}

func TestASweepThatCannotBeMade(t *testing.T) {
	inTrial(t, drive(t), func(ctx context.Context, e *kvbench.Env, l cache.Level) {
		cfg := sweepConfig{level: l, readShare: 1, inFlight: 1, steps: 1, bytes: 1,
			time: time.Second}
		_, err := swept(ctx, e, cfg)
		require.ErrorContains(t, err, "nothing lies in the storage tier")
		cfg.objects = []tiers.Object{{Key: "a", Size: page}}
		over, cancel := context.WithCancelCause(ctx)
		cancel(assert.AnError)
		_, err = swept(over, e, cfg)
		require.ErrorIs(t, err, assert.AnError)
		cfg.time = 0
		_, err = swept(ctx, e, cfg)
		require.ErrorContains(t, err, "must be positive")
		cfg.time, cfg.level = time.Second, cache.Level{Kind: tiers.Storage}
		_, err = swept(ctx, e, cfg)
		require.ErrorContains(t, err, "takes no time")
	})
	inTrial(t, func(clock.Clock) tiers.Files { return tiertest.NewNull() },
		func(ctx context.Context, e *kvbench.Env, l cache.Level) {
			steps, err := swept(ctx, e, sweepConfig{level: l, inFlight: 1, steps: 3, fileSize: 1,
				bytes: 1 << 10, time: time.Second, capacity: 1 << 40})
			require.NoError(t, err)
			assert.Empty(t, steps, "nothing took time")
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
			key := evenly(tier, "field/", n)
			at, _ := tier.Home(key)
			has[at]++
			keys[key] = true
		}
		assert.Len(t, keys, 48)
		assert.Equal(t, 48/of, slices.Min(has))
	}
	assert.Equal(t, "field/7", evenly(tiertest.NewNull(), "field/", 7))
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
