package plainio

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
	"kvbench/tiers/tiertest"
	"kvbench/tracing/host"
)

// inVirtualTime runs a routine over a drive of 16 pages/ms reading, 8 writing, after 1 ms each. A
// removal takes a third of a flush.
func inVirtualTime(t *testing.T, window, flush time.Duration, r Routine) (
	*result.Result, *flushing) {
	t.Helper()
	return inVirtualTimeOn(t, 1<<40, window, flush, r)
}

// inVirtualTimeOn does so in a tier of a capacity.
func inVirtualTimeOn(t *testing.T, capacity int64, window, flush time.Duration, r Routine) (
	*result.Result, *flushing) {
	tiertest.OneThread(t)
	t.Helper()
	v := clock.NewVirtual()
	tier := &flushing{Files: drive(v), clock: v, flushes: map[time.Duration]int{},
		takes: flush}
	cfg := virtual(v, tier, capacity, 1).lasting(window)
	cfg.Seed = 7
	cfg.Usage = func() host.Usage { return host.Usage{} } // real processors, and 64 virtual ms
	res, err := runPlain(t.Context(), cfg, r)
	require.NoError(t, err)
	return res, tier
}

// Equal files of equal workers that begin together would all be flushed together, again and again:
// a window would count whole rounds of files, and the number would not describe the drive. Here a
// file of 16 pages takes 32 ms and its flush 20.
func TestTheCeilingIsNotInLockstep(t *testing.T) {
	var rates []float64
	for _, window := range []time.Duration{50, 61, 77, 100, 115} {
		res, tier := inVirtualTime(t, window*time.Millisecond, 20*time.Millisecond,
			&Ceiling{Footprint: 1024 * page, InFlight: 16})
		assert.Equal(t, result.EndedByDeadline, res.EndedBy)
		rates = append(rates, *res.Tiers[0].Write.BytesPerSecond)
		for at, n := range tier.flushes {
			assert.LessOrEqual(t, n, 4, "of 16 files flushed at %s", at)
		}
	}
	assert.Less(t, slices.Max(rates), 1.15*slices.Min(rates), "whatever the window: %v", rates)
}

func TestAWindowOfWritesEndsWithItsFootprint(t *testing.T) {
	res, tier := inVirtualTime(t, time.Hour, 3*time.Millisecond,
		&Ceiling{Footprint: 64 << 20, InFlight: 4})
	assert.Equal(t, result.EndedByFootprint, res.EndedBy)
	assert.Equal(t, result.StatusComplete, res.Status)
	assert.InEpsilon(t, 64<<20, res.Tiers[0].Write.Bytes, 0.2, "but for what was in flight")
	assert.LessOrEqual(t, res.Tiers[0].Write.Bytes, int64(64<<20))
	assert.InEpsilon(t, 4*page/(1.125e-3), *res.Tiers[0].Write.BytesPerSecond, 0.1)
	assert.Zero(t, res.Tiers[0].Deleted)
	assert.LessOrEqual(t, tier.most, int64(64<<20))
	assert.Nil(t, res.PlainIO.Sweep, "the number in flight was given")
}

// A stream with one or two files would still be writing when another finds no capacity, and the
// window would end without any of its bytes.
func TestAFootprintThatIsTooSmallIsRefused(t *testing.T) {
	for want, r := range map[string]*Ceiling{
		"writing with 16 streams, each of which needs room for 4 files of a chunk at least, takes " +
			"262144 bytes, and the footprint leaves 258048": {Footprint: 63 * page, InFlight: 16},
		"leaves 4095 bytes to read, which is less than a chunk of 4096": {
			Footprint: page - 1, ReadShare: 1, InFlight: 1},
	} {
		cfg := overLevels(slowTier(clock.NewVirtual(), 1<<30), 1).lasting(time.Second)
		_, err := runPlain(t.Context(), cfg, r)
		assert.ErrorContains(t, err, want)
	}
	res, _ := inVirtualTime(t, time.Hour, 3*time.Millisecond,
		&Ceiling{Footprint: 64 * page, InFlight: 16})
	assert.Greater(t, res.Completions(), int64(2*16), "of 64 files")
	// A sweep finds no more than the capacity allows.
	res, _ = inVirtualTime(t, time.Hour, 3*time.Millisecond,
		&Ceiling{Footprint: 16 * page, StepTime: 200 * time.Millisecond})
	assert.Equal(t, 4, res.Workload.Workers)
}

// The time of an operation that the end of the window cuts off is the storage's, too: otherwise a
// run of large files would seem limited by the harness.
func TestWhatTheEndCutsOffIsTheStoragesTime(t *testing.T) {
	for share := range 2 {
		res, _ := inVirtualTime(t, 300*time.Millisecond, 3*time.Millisecond,
			&Ceiling{ReadShare: float64(share), Footprint: 4096 * page, InFlight: 4})
		assert.Equal(t, result.EndedByDeadline, res.EndedBy)
		assert.EqualValues(t, 4, res.Requests.CancelledOperations)
		assert.InEpsilon(t, res.Harness.WorkerBusyNS, res.Harness.Busy.StorageNS, 0.1)
	}
}

// A drive that moves 16 pages in the time of one needs 16 in flight to read, 8 to write.
func TestTheCeilingFindsHowManyInFlightAreEnough(t *testing.T) {
	for share, want := range map[float64]int{1: 32, 0: 16} {
		res, _ := inVirtualTime(t, time.Second, 3*time.Millisecond, &Ceiling{ReadShare: share,
			Footprint: 256 << 20, StepTime: 200 * time.Millisecond})
		assert.Equal(t, want, res.Workload.Workers, "of %v", res.PlainIO.Sweep)
		assert.GreaterOrEqual(t, len(res.PlainIO.Sweep), 3)
		most := 0.0
		for _, r := range res.PlainIO.Sweep {
			most = max(most, r.Rate())
		}
		moved := res.Tiers[0].Read.Bytes + res.Tiers[0].Write.Bytes
		assert.GreaterOrEqual(t, float64(moved)/time.Duration(res.WindowNS).Seconds(), 0.9*most)
	}
}

func TestChurnRemovesAFileForEachThatItWrites(t *testing.T) {
	const footprint = 64 << 20
	res, tier := inVirtualTime(t, 10*time.Second, 3*time.Millisecond,
		&Ceiling{ReadShare: 0.5, Churn: true, Footprint: footprint, InFlight: 4})
	assert.Equal(t, result.EndedByDeadline, res.EndedBy)
	write, deleted := res.Tiers[0].Write, res.Tiers[0].Deleted
	assert.Greater(t, write.Bytes, int64(footprint), "more than there is room for")
	assert.InDelta(t, write.Operations, deleted.Entries, 4)
	assert.LessOrEqual(t, tier.most, int64(footprint)+4*res.PlainIO.FileBytes)
	assert.InEpsilon(t, write.Bytes, res.Tiers[0].Read.Bytes, 0.1)
}

func TestRemovalIsANumberOfItsOwn(t *testing.T) {
	res, tier := inVirtualTime(t, time.Hour, 3*time.Millisecond, &Removal{Ceiling: Ceiling{Footprint: 64 << 20}})
	assert.Equal(t, result.EndedByInput, res.EndedBy)
	r := res.Removal
	require.NotNil(t, r)
	assert.EqualValues(t, 64, r.Files)
	assert.EqualValues(t, 64<<20, r.Bytes)
	assert.EqualValues(t, 64, res.Tiers[0].Deleted.Entries)
	assert.EqualValues(t, 64*time.Millisecond, r.UnlinkNS, "a millisecond each, one after the other")
	assert.Greater(t, r.QuietNS, r.UnlinkNS, "something was flushed")
	assert.InEpsilon(t, 64/time.Duration(r.QuietNS).Seconds(), *r.FilesPerSecond, 1e-9)
	assert.EqualValues(t, 64, res.Completions())
	assert.Zero(t, tier.now-page, "but for what was flushed")
	assert.Equal(t, result.DiscardLimited, res.Harness.Verdict.Kind)
	units := []string{}
	for _, m := range res.Metrics() {
		units = append(units, m.Unit)
	}
	assert.True(t, slices.Contains(units, "removals/s") && slices.Contains(units, "freed-B/s"))
}

// A disk of 1 GB/s with 4 in flight: on a busy machine a step with 128 in flight and 37 completed
// requests may look faster, and is no reason to have 128.
func TestAPickNeedsEnoughRequests(t *testing.T) {
	step := func(n int, rate float64) result.SweepStep {
		return result.SweepStep{InFlight: n, Read: rate, NS: int64(100 * time.Millisecond)}
	}
	const request = 1e6 // four for each of 16 in flight are 64 MB of the 100 MB of a step
	all := []result.SweepStep{step(4, 1e9), step(8, 1e9), step(16, 1.02e9), step(32, 1.2e9)}
	assert.Equal(t, 0, bestStep(all, request), "32 would need 128 requests to end, and saw 120")
	assert.Equal(t, 3, bestStep(append(all[:3:3], step(32, 1.3e9)), request))
	assert.Equal(t, -1, bestStep([]result.SweepStep{step(4, 1e8), step(8, 1e9)}, request),
		"after a step that shows nothing no step counts")
	assert.Equal(t, -1, bestStep(nil, request))
}

// A sweep that cannot have found the number in flight says so.
func TestADoubtfulSweep(t *testing.T) {
	for name, c := range map[string]struct {
		share, size float64 // reads; of the footprint in parts of the tier
		step        time.Duration
		workers     int
		doubt       string
	}{
		"reads need no room":        {1, 1, 200 * time.Millisecond, 32, ""},
		"writes need as much again": {0, 1, 200 * time.Millisecond, 4, "no step of the queue-depth sweep"},
		"half of the tier":          {0, 0.5, 200 * time.Millisecond, 16, ""},
		"a step of a few requests":  {1, 1, time.Millisecond, 4, "no step of the queue-depth sweep"},
		"an end before the best":    {1, 1, 5 * time.Millisecond, 16, "after its fastest step: more than 16"},
	} {
		ceiling := &Ceiling{ReadShare: c.share, Footprint: int64(c.size * (512 << 20)), StepTime: c.step}
		res, _ := inVirtualTimeOn(t, 512<<20, 20*time.Second, 3*time.Millisecond, ceiling)
		assert.Equal(t, c.workers, res.Workload.Workers, "%s: %v", name, res.PlainIO.Sweep)
		if c.doubt == "" {
			assert.Empty(t, res.PlainIO.SweepDoubt, name)
			continue
		}
		assert.Contains(t, res.PlainIO.SweepDoubt, c.doubt, name)
		assert.Contains(t, res.Warnings, res.PlainIO.SweepDoubt, name)
	}
}
