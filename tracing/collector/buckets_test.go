package collector

import (
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

// bucketOf mirrors bucket_of in bpf/histogram.h.
func bucketOf(v uint64, n int) int {
	if v < 1<<subBits {
		return int(v)
	}
	e := bits.Len64(v) - 1
	i := (e-subBits+1)<<subBits + int(v>>(e-subBits))&(1<<subBits-1)
	return min(i, n-1)
}

func TestBucketsHoldTheirValues(t *testing.T) {
	for e := range 35 {
		for _, v := range []uint64{1<<e - 1, 1 << e, 1<<e + 1, 1<<e + 1<<e/3} {
			if v >= 1<<35 {
				continue
			}
			low, high := bucketRange(bucketOf(v, buckets))
			assert.LessOrEqual(t, low, v)
			assert.Greater(t, high, v)
			assert.LessOrEqual(t, float64(high-low), max(1, float64(v)/16),
				"the bucket of %d is narrow", v)
		}
	}
	assert.Equal(t, buckets-1, bucketOf(math.MaxUint64, buckets),
		"what is too large counts in the last one")
	for i := 1; i < buckets; i++ {
		_, high := bucketRange(i - 1)
		low, _ := bucketRange(i)
		require.Equal(t, high, low, "no gap before bucket %d", i)
	}
}

func TestPercentiles(t *testing.T) {
	var counts [buckets]uint64
	for v := uint64(1); v <= 1000; v++ {
		counts[bucketOf(v, buckets)]++
	}
	h := newHistogram("requests", counts[:], 1, 1, 500500)
	assert.EqualValues(t, 1000, h.Count)
	assert.InDelta(t, 500.5, *h.Mean, 1e-9)
	assert.InEpsilon(t, 500, *h.P50, 0.04)
	assert.InEpsilon(t, 950, *h.P95, 0.04)
	assert.InEpsilon(t, 990, *h.P99, 0.04)

	assert.Zero(t, newHistogram("us", make([]uint64, buckets), 1, 1, 0))
	assert.True(t, math.IsNaN((tracing.Histogram{}).Percentile(50)))

	one := newHistogram("requests", []uint64{0, 0, 0, 7}, 1, 1, 21)
	assert.InDelta(t, 3, one.Percentile(1), 0, "a bucket of one whole number has no inside")
	assert.InDelta(t, 3, one.Percentile(100), 0)
}

func TestZonesFitTheDevice(t *testing.T) {
	sized := func(sectors string) []host.Disk {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "size"), []byte(sectors+"\n"), 0o644))
		return []host.Disk{{SysPath: dir}}
	}
	const mib = 1 << 20 / host.SectorSize
	assert.EqualValues(t, 16<<10*mib, zoneSectors(nil), "16 GiB where no device is known")
	assert.EqualValues(t, mib, zoneSectors(sized("2048")))
	assert.EqualValues(t, mib, zoneSectors(sized("2097152")), "1 GiB are 1024 zones")
	assert.EqualValues(t, 2*mib, zoneSectors(sized("2097153")))
	assert.EqualValues(t, 16<<10*mib, zoneSectors(sized("21474836480")), "10 TiB")
}
