package host

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var sink [][]byte

func TestReadUsageCountsWhatHappens(t *testing.T) {
	before := ReadUsage()
	sink = nil
	const objects, size = 100, 64 << 10
	for range objects {
		sink = append(sink, make([]byte, size))
	}
	for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; { // burn CPU, not the wall's patience
		sink[0][0]++
	}
	runtime.GC()
	u := ReadUsage().Sub(before)
	runtime.KeepAlive(sink)
	sink = nil

	assert.GreaterOrEqual(t, u.Mallocs, uint64(objects))
	assert.GreaterOrEqual(t, u.AllocBytes, uint64(objects*size))
	assert.GreaterOrEqual(t, u.NumGC, uint64(1))
	assert.Positive(t, u.GCPause)
	assert.Positive(t, u.CPU)
	assert.Equal(t, u.User+u.Sys, u.CPU)
	assert.Positive(t, u.PeakRSS)
}

func TestUsageSubKeepsThePeak(t *testing.T) {
	before := Usage{CPU: 3, User: 2, Sys: 1, PeakRSS: 900, Mallocs: 10, AllocBytes: 100, NumGC: 1, GCPause: 5, VolCtxSw: 7, InvolCtxSw: 8}
	after := Usage{CPU: 9, User: 6, Sys: 3, PeakRSS: 500, Mallocs: 15, AllocBytes: 160, NumGC: 3, GCPause: 6, VolCtxSw: 9, InvolCtxSw: 11}
	assert.Equal(t, Usage{CPU: 6, User: 4, Sys: 2, PeakRSS: 500, Mallocs: 5, AllocBytes: 60, NumGC: 2, GCPause: 1, VolCtxSw: 2, InvolCtxSw: 3}, after.Sub(before))
}

func TestResetPeakRSS(t *testing.T) {
	if err := ResetPeakRSS(); err != nil {
		t.Skipf("this system does not reset peaks: %v", err)
	}
	const rise = 64 << 20
	start := CurrentRSS()
	require.Positive(t, start)
	touch(t, rise)
	high := ReadUsage().PeakRSS
	require.GreaterOrEqual(t, high, start+rise/2, "the peak saw the memory")
	require.NoError(t, ResetPeakRSS())
	assert.Less(t, ReadUsage().PeakRSS, high-rise/4, "the memory is gone and the peak with it")
}

func TestReadUsageDoesNotAllocateMuch(t *testing.T) {
	ReadUsage()
	assert.Less(t, testing.AllocsPerRun(10, func() { ReadUsage() }), 30.0)
}

func TestKibField(t *testing.T) {
	const status = "Name:\tkv\nVmHWM:\t    2048 kB\nVmRSS:\t  12 kB\nBad:\tx kB\n"
	assert.EqualValues(t, 2<<20, kibField(status, "VmHWM:"))
	assert.EqualValues(t, 12<<10, kibField(status, "VmRSS:"))
	assert.Zero(t, kibField(status, "Bad:"))
	assert.Zero(t, kibField(status, "VmSwap:"))
}

func TestResetPeakRSSSaysUnsupported(t *testing.T) {
	err := ResetPeakRSS()
	if runtime.GOOS != "linux" {
		require.True(t, errors.Is(err, errors.ErrUnsupported))
	}
}
