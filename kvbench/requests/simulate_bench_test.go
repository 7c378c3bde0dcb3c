package requests

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/workloads/iotrace"
)

// BenchmarkSimulate is option 1 through queue, plan, cache and trace writer
// (plain CSV): ops/s is what the specification wants above a million.
func BenchmarkSimulate(b *testing.B) {
	for _, c := range []struct {
		name     string
		capacity int64
		traced   bool
	}{{"storage=unlimited/trace=csv", 0, true}, {"storage=1TiB/trace=csv", 1 << 40, true},
		{"storage=1TiB/trace=none", 1 << 40, false}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			ops, start := int64(0), time.Now()
			for b.Loop() {
				cfg := optionOne(b, 300*time.Second)
				cfg.Storage.StorageBytes = c.capacity
				sim := kvbench.SimConfig{}
				if c.traced {
					sim.Trace = iotrace.NewWriter(io.Discard)
				}
				res, err := simulateLoad(b.Context(), cfg, sim)
				require.NoError(b, err)
				ops += res.Requests.Operations
			}
			b.ReportMetric(float64(ops)/time.Since(start).Seconds(), "ops/s")
			b.ReportMetric(float64(ops)/float64(b.N), "ops/op")
		})
	}
}
