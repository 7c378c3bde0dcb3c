package requests

import (
	"os"
	"testing"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
)

// The kernel limits the device; loads take about half a second, because it hands out the bandwidth
// in slices of 100 ms. That is a minute for each rate: TestMeasuredBreakEven has the others.
func TestBreakEvenOnALimitedDevice(t *testing.T) {
	tiertest.DevicePace(t)
	breakEvenAt(t, 200)
}

func breakEvenAt(t *testing.T, mib int64) {
	if tiertest.Race {
		t.Skip("measures where time goes, and runs without the race detector")
	}
	privtest.Ahead(t)
	const after = 400 * time.Millisecond
	// Four entries of 4.55 times the length at the break-even.
	fs := privtest.LoopFS(t, int(mib*3), privtest.LoopOptions{DirectIO: true})
	rates := privtest.Rates{Read: mib << 20, Write: 4 << 30}
	privtest.ThrottleLoop(t, fs, rates).Add(t, os.Getpid())
	storage := kvbench.StorageConfig{CacheDir: fs.Dir + "/cache",
		StorageBytes: mib * 5 / 2 << 20, Direct: true,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 4, Workers: 1}}
	newBreakEvenCase(float64(mib<<20), after).check(t, storage,
		func(cfg runConfig) *result.Result { return mustRun(t, cfg) })
}
