package host

import (
	"errors"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var kept [][]byte

func TestReadUsageCountsWhatHappens(t *testing.T) {
	before := ReadUsage()
	const objects, size = 100, 64 << 10
	for range objects {
		kept = append(kept, make([]byte, size))
	}
	for i := range 1 << 24 { // some milliseconds of a processor, however long they take
		kept[0][i%size]++
	}
	runtime.GC()
	after := ReadUsage()
	kept = nil

	assert.GreaterOrEqual(t, after.Mallocs-before.Mallocs, uint64(objects))
	assert.GreaterOrEqual(t, after.AllocBytes-before.AllocBytes, uint64(objects*size))
	assert.Greater(t, after.NumGC, before.NumGC)
	assert.Greater(t, after.GCPause, before.GCPause)
	assert.Greater(t, after.CPU, before.CPU)
	assert.Positive(t, after.PeakRSS)
}

// Whether a goroutine waits depends on the scheduler: repeat until one did and the runtime sampled
// it.
func TestReadUsageCountsWaits(t *testing.T) {
	var mu sync.Mutex
	before := ReadUsage()
	for u := before; u.LockWait == before.LockWait || u.SchedWait == before.SchedWait; {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				runtime.Gosched() // with the lock: others come to it
			})
		}
		all.Wait()
		u = ReadUsage()
	}
	assert.Equal(t, 5*time.Second, sum(&metrics.Float64Histogram{
		Buckets: []float64{math.Inf(-1), 0, 2, 4, math.Inf(1)}, Counts: []uint64{9, 1, 0, 1}}))
}

func TestResetPeakRSS(t *testing.T) {
	if err := ResetPeakRSS(); err != nil {
		require.True(t, runtime.GOOS == "linux" || errors.Is(err, errors.ErrUnsupported))
		t.Skipf("this system does not reset peaks: %v", err)
	}
	const rise = 64 << 20
	start := ReadUsage().PeakRSS
	// Outside of the Go heap, so that it is gone at once.
	mem, err := unix.Mmap(-1, 0, rise, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	for i := 0; i < rise; i += 4096 {
		mem[i] = 1
	}
	require.NoError(t, unix.Munmap(mem))
	high := ReadUsage().PeakRSS
	require.GreaterOrEqual(t, high, start+rise/2, "the peak saw the memory")
	require.NoError(t, ResetPeakRSS())
	assert.Less(t, ReadUsage().PeakRSS, high-rise/4, "the memory is gone and the peak with it")
}
