package kvbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestVerdict(t *testing.T) {
	base := verdictInput{window: 10 * time.Second, idle: 2 * time.Second, busy: 98 * time.Second, cpu: 5 * time.Second, cores: 2,
		host: 5 * time.Second, bufferWait: 5 * time.Second}
	change := func(f func(*verdictInput)) Verdict { in := base; f(&in); return judge(in) }
	v := judge(base)
	assert.Equal(t, StorageLimited, v.Kind)
	assert.InDelta(t, 0.02, *v.IdleShare, 1e-9)
	assert.InDelta(t, 0.25, *v.CPUShare, 1e-9)
	assert.InDelta(t, 10.0/98, *v.HostWaitShare, 1e-9)

	v = change(func(in *verdictInput) { in.idle, in.busy = 21*time.Second, 79*time.Second; in.cpu = 20 * time.Second })
	assert.Equal(t, LoadLimited, v.Kind, "idle workers come first")
	assert.Contains(t, v.Reason, "21 %")
	v = change(func(in *verdictInput) { in.cpu = 17 * time.Second })
	assert.Equal(t, HarnessLimited, v.Kind)
	assert.Contains(t, v.Reason, "85 % of the 2 cores")
	v = change(func(in *verdictInput) { in.bufferWait = 25 * time.Second })
	assert.Equal(t, HarnessLimited, v.Kind)
	assert.Equal(t, StorageLimited, change(func(in *verdictInput) { in.idle, in.busy = 20*time.Second, 80*time.Second }).Kind, "20 % is not more than 20 %")
	unmeasured := judge(verdictInput{window: time.Second})
	assert.Equal(t, StorageLimited, unmeasured.Kind)
	assert.Nil(t, unmeasured.IdleShare)
	assert.Equal(t, NoVerdict, judge(verdictInput{}).Kind)
}

func TestStorageHealth(t *testing.T) {
	s := &CacheStats{CacheHitRate: new(0.3), LatencyMS: map[string]float64{"storage_write_device_p95_ms": 499,
		"storage_read_device_p95_ms": 200, "cpu_read_p95_ms": 3, "cpu_write_p95_ms": 151}}
	h := storageHealth(s, "latency")
	assert.Equal(t, "FAIL", h.OverallStatus)
	assert.Equal(t, 4, h.TotalCount)
	assert.Equal(t, 1, h.PassedCount, "targets are strict")
	assert.InDelta(t, 151, h.Criteria[2].Actual, 1e-9, "the worse direction of the cpu tier")
	h = storageHealth(&CacheStats{StorageReadBandwidth: new(2.0), CacheHitRate: new(0.9)}, "throughput")
	assert.Equal(t, "PASS", h.OverallStatus)
	assert.Equal(t, 2, h.TotalCount)
	assert.Equal(t, "NO DATA", storageHealth(&CacheStats{}, "latency").OverallStatus)
}
