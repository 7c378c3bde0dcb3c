package kvbench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/gputier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// NVML that fails at the end of the window: counters since the boot are no growth in the window.
func TestCardCountersThatEndWithoutNVML(t *testing.T) {
	tr := &trial{}
	tr.cards = &gputier.Tier{}
	tr.info.Cards = []result.Card{{Address: "no card", ReceivedBytes: new(int64(1) << 50), SentBytes: new(int64(1) << 50)}}
	tr.closeCardCounters()
	card := tr.info.Cards[0]
	assert.NotEmpty(t, card.NVMLReason)
	assert.Nil(t, card.ReceivedBytes)
	assert.Nil(t, card.SentBytes)
}

// ticking is a workload that is neither requests nor plain I/O: it counts a request a second.
type ticking struct {
	phase   Phase
	prepare error
	run     func(ctx context.Context, e *Env) error // nil: tick until ctx ends

	preparing, closing func() // called by Prepare and Close; nil: nothing
	env                *Env

	closed, reported int
}

func (w *ticking) Phase() Phase       { return w.phase }
func (w *ticking) Forecast() Forecast { return Forecast{} }

func (w *ticking) Prepare(ctx context.Context, e *Env) error {
	w.env = e
	err := errors.Join(w.prepare, e.Clock.Sleep(ctx, time.Minute))
	if w.preparing != nil {
		w.preparing()
	}
	return err
}

func (w *ticking) Run(ctx context.Context, e *Env) error {
	if w.run != nil {
		return w.run(ctx, e)
	}
	for e.Clock.Sleep(ctx, time.Second) == nil {
		e.Rec.Request(record.RequestSample{At: e.Clock.Now()})
	}
	return context.Cause(ctx)
}

func (w *ticking) Report(*record.Info) { w.reported++ }

func (w *ticking) Close() error {
	if w.closing != nil {
		w.closing()
	}
	w.closed++
	return nil
}

// onNull is a trial on a storage tier that takes no time and keeps nothing.
func onNull() Config {
	return Config{Clock: clock.NewWall(), Storage: StorageConfig{
		Use:    buffer.Use{Chunk: 4096, Depth: 1, Workers: 1},
		Levels: []cache.Level{{Kind: tiers.Storage, Tier: transfer.New(tiertest.NewNull(), nil), Capacity: 1 << 40}},
	}}
}

// tick runs a workload over a tier that takes no time, in a bubble or in virtual time.
func tick(t *testing.T, w *ticking, virtual bool) (res *result.Result, err error) {
	t.Helper()
	if virtual {
		return Simulate(t.Context(), onNull(), w, SimConfig{})
	}
	synctest.Test(t, func(t *testing.T) { res, err = Run(t.Context(), onNull(), w) })
	return res, err
}

// TestBusyShare: the share is of the time between two readings, and a tick of the kernel may be longer than that.
func TestBusyShare(t *testing.T) {
	v := clock.NewVirtual()
	tr := &trial{}
	tr.readAt = 10 * time.Millisecond
	tr.Clock = v
	require.NoError(t, v.Sleep(t.Context(), 30*time.Millisecond))
	for busy, want := range map[time.Duration]float64{0: 0, 8: 0.4, 20: 1, 24: 1} {
		stat := host.BlockStat{DeviceStat: tracing.DeviceStat{IOTicks: busy * time.Millisecond}}
		assert.Equal(t, want, *tr.busyShare(stat), "%d ms", busy)
	}
}

func TestAnyWorkloadHasAWindow(t *testing.T) {
	for _, virtual := range []bool{false, true} {
		w := &ticking{phase: Phase{Window: 10*time.Second + 500*time.Millisecond}}
		r, err := tick(t, w, virtual)
		require.NoError(t, err)
		assert.Equal(t, result.EndedByDeadline, r.EndedBy)
		assert.Equal(t, int64(10500*time.Millisecond), r.WindowNS)
		assert.EqualValues(t, 10, r.Requests.Completed)
		assert.Equal(t, []int{1, 1}, []int{w.reported, w.closed})

		w = &ticking{phase: Phase{Window: 10 * time.Second, Warmup: 3500 * time.Millisecond}}
		r, err = tick(t, w, virtual)
		require.NoError(t, err)
		assert.EqualValues(t, 10, r.Requests.Completed, "from the fourth second on")

		w = &ticking{phase: Phase{Limit: 7}}
		r, err = tick(t, w, virtual)
		require.NoError(t, err)
		assert.Equal(t, result.EndedByCount, r.EndedBy)
		assert.Equal(t, int64(7*time.Second), r.WindowNS)
	}
}

// The process computes all the time. The workload suspends the measurement before the window, in the middle, and
// until the end.
func TestSuspendedTimeIsNotMeasured(t *testing.T) {
	for name, since := range map[string]time.Duration{"from the start": 0, "until the end": 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			cfg, begun := onNull(), time.Now()
			cfg.Usage = func() host.Usage { return host.Usage{CPU: time.Since(begun)} }
			r, err := Run(t.Context(), cfg, &ticking{run: func(ctx context.Context, e *Env) error {
				for range 2 {
					e.Suspend()
					_ = e.Clock.Sleep(ctx, 2*time.Second)
					e.Resume()
					_ = e.Clock.Sleep(ctx, time.Second)
				}
				e.Rec.Request(record.RequestSample{At: e.Clock.Now()})
				e.Suspend()
				return e.Clock.Sleep(ctx, since)
			}})
			require.NoError(t, err)
			assert.Equal(t, int64(6*time.Second+since), r.WindowNS, name)
			assert.Equal(t, int64(2*time.Second), r.Harness.CPUNS, name)
		})
	}
}

func TestAWorkloadEndsItsWindow(t *testing.T) {
	for name, c := range map[string]struct {
		run     func(ctx context.Context, e *Env) error
		endedBy string
		says    string
	}{
		"its work is done": {
			func(ctx context.Context, e *Env) error {
				e.Rec.Request(record.RequestSample{At: e.Clock.Now()})
				return e.Clock.Sleep(ctx, time.Second)
			},
			result.EndedByInput, "",
		},
		"it says why": {
			func(ctx context.Context, e *Env) error {
				e.Rec.Request(record.RequestSample{At: e.Clock.Now()})
				e.End(result.EndedByCapacity)
				return nil
			},
			result.EndedByCapacity, "",
		},
		"it fails": {
			func(context.Context, *Env) error { return assert.AnError },
			result.EndedByError, assert.AnError.Error(),
		},
		"it panics": {
			func(context.Context, *Env) error { panic("on purpose") },
			result.EndedByError, "on purpose",
		},
	} {
		for _, virtual := range []bool{false, true} {
			w := &ticking{phase: Phase{Window: time.Hour}, run: c.run}
			r, err := tick(t, w, virtual)
			if assert.Equal(t, c.endedBy, r.EndedBy, name); c.says != "" {
				require.ErrorContains(t, err, c.says)
			} else {
				require.NoError(t, err, name)
			}
			assert.Equal(t, []int{1, 1}, []int{w.reported, w.closed}, name)
		}
	}
}

func TestAWorkloadThatCannotBePreparedHasNoWindow(t *testing.T) {
	for _, virtual := range []bool{false, true} {
		w := &ticking{phase: Phase{Window: time.Hour}, prepare: assert.AnError}
		r, err := tick(t, w, virtual)
		require.ErrorIs(t, err, assert.AnError)
		assert.Equal(t, result.StatusFailed, r.Status)
		assert.Equal(t, []int{1, 1}, []int{w.reported, w.closed})
	}
}

// When all goroutines wait for each other, the result is an error.
func TestASimulationThatStandsStillFails(t *testing.T) {
	w := &ticking{phase: Phase{Window: time.Hour}, run: func(ctx context.Context, e *Env) error {
		return e.Clock.NewEvent().Wait(ctx)
	}}
	_, err := tick(t, w, true)
	require.ErrorContains(t, err, "stands still")
}

// silent is the engine of a device that does not answer.
type silent struct{ ioengine.Engine }

func (silent) Stalls() ioengine.Stalls {
	return ioengine.Stalls{Count: 2, Longest: []ioengine.Stuck{{What: "read", Path: "/kv/0",
		N: 4096, For: 12 * time.Second}, {For: 3 * time.Second}}}
}

func (silent) Stuck(dst []ioengine.Stuck, older time.Duration) []ioengine.Stuck {
	return append(dst, ioengine.Stuck{For: older}, ioengine.Stuck{For: 12 * time.Second})
}

func TestADeviceThatDoesNotAnswerIsSeenAndTold(t *testing.T) {
	w := &ticking{phase: Phase{Limit: 7}}
	var seen Snapshot
	w.run = func(ctx context.Context, e *Env) error {
		e.trial.engine, e.trial.cfg.Progress = silent{}, func(s Snapshot) { seen = s }
		e.Show(Snapshot{Stage: "running"})
		e.Rec.Request(record.RequestSample{At: e.Clock.Now()})
		return nil
	}
	r, err := tick(t, w, true)
	require.NoError(t, err)
	assert.Equal(t, 2, seen.Stuck)
	assert.Equal(t, 12*time.Second, seen.StuckFor)
	assert.Contains(t, r.Warnings, "the device had a request for 12s without an answer: read of "+
		"4096 bytes at offset 0 of /kv/0")
	assert.EqualValues(t, 2, r.Stalls.Count)
	assert.EqualValues(t, 12*time.Second, r.Stalls.LongestNS)
}
