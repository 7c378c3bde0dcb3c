package requests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
	"kvbench/workloads"
)

// sumOf is the time that is accounted for, of which the first two are parts of others.
func sumOf(b result.BusyTime) int64 {
	b.HandoverNS, b.RemovalNS = 0, 0
	return b.StorageNS + b.OtherTiersNS + b.ClearingNS + b.RoomNS + b.WriteLimitNS + b.WriterNS +
		b.BuffersNS + b.GenerationNS + b.HostNS + b.DispatchNS + b.ThinkingNS
}

// A load that ends by itself has no operation at an edge of its window: to the nanosecond, the
// parts are the whole.
func TestTheWorkersTimeIsAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := singles(12, 2)
		for _, r := range requests {
			r.Kind, r.GenerateTokens = workloads.PrefillDecode, 3
		}
		cfg := testConfig(slow(clock.NewWall(), 6*unit), newScript(requests...), 3).finite()
		cfg.Storage.MaxWriters = 1
		cfg.TokenTime = time.Second
		cfg.OnDispatch = func(*workloads.Request, []workloads.Op) {
			time.Sleep(time.Millisecond) // as parsing would take, with the dispatcher's lock
		}
		cfg.Workers = 1
		r := mustRun(t, cfg)
		b := r.Harness.Busy
		assert.EqualValues(t, r.Harness.WorkerBusyNS, sumOf(b), "%+v", b)
		assert.EqualValues(t, 12*2*time.Second+12*2*time.Second, b.StorageNS, "writes and reads")
		assert.EqualValues(t, 12*3*time.Second, b.ThinkingNS)
		assert.EqualValues(t, 12*time.Millisecond, b.DispatchNS)
	})
}

// With one writer at a time and four who want to write, three wait.
func TestWaitsForTheWriteLimitAreAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(slow(clock.NewWall(), 1<<40), newScript(singles(40, 1)...), 4).finite()
		cfg.Storage.MaxWriters = 1
		r := mustRun(t, cfg)
		b := r.Harness.Busy
		assert.EqualValues(t, 40*time.Second, b.StorageNS)
		assert.EqualValues(t, (0+1+2+37*3)*time.Second, b.WriteLimitNS, "until no writer is left")
		assert.EqualValues(t, r.Harness.WorkerBusyNS, sumOf(b), "%+v", b)
		assert.InDelta(t, 1, *r.Tiers[0].Write.MeanInFlight, 1e-9)
		assert.Equal(t, int64(3*time.Second), *r.Latency.WriteAdmission.Max)
		assert.Equal(t, int64(time.Second), *r.Latency.Levels["storage"].Write.IO.Max,
			"waiting is not in the latency of the I/O")
	})
}
