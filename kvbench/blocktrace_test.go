package kvbench

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
)

// traced is the fixture with a trace.
func traced(t *testing.T, c tracing.Capture) *Result {
	r := *fixtureResult()
	var err error
	r.DeviceLatencyTracing, err = json.Marshal(tracing.Trace{Capture: c})
	require.NoError(t, err)
	return &r
}

func TestARunOnNFSMakesAJobOfTheMountsTransfers(t *testing.T) {
	mounts, err := tracing.ParseMounts(strings.NewReader(
		"612 29 0:52 / /mnt/kv rw,relatime - nfs4 filer:/export/kv rw,vers=4.2,rsize=1048576,wsize=262144,namlen=255,hard,proto=tcp,addr=10.0.0.9\n"))
	require.NoError(t, err)
	r := traced(t, tracing.Capture{Status: tracing.StatusNone, Reason: "nfs4 is a network filesystem (filer:/export/kv): its disks are not on this host"})
	r.Environment.addDevice(tracing.Device{Filesystem: "nfs4", Mount: mounts[0]})
	require.NotNil(t, r.Environment.Filesystem.ReadSizeBytes)
	assert.EqualValues(t, 1<<20, *r.Environment.Filesystem.ReadSizeBytes)
	assert.EqualValues(t, 256<<10, *r.Environment.Filesystem.WriteSizeBytes)

	// kvreport has the JSON alone.
	text, err := json.Marshal(r)
	require.NoError(t, err)
	again, err := ParseResult(text)
	require.NoError(t, err)
	again.IO.ChunkBytes = 2 << 20
	job, err := FioJob(again)
	require.NoError(t, err)
	assert.Contains(t, job, "\nbssplit=1m/100,256k/100\n")
	assert.Contains(t, job, "nfs4 is a network filesystem (filer:/export/kv)")
	again.IO.ChunkBytes = 512 << 10
	job, err = FioJob(again)
	require.NoError(t, err)
	assert.Contains(t, job, "\nbssplit=512k/100,256k/100\n", "no transfer is larger than the request")
}

func TestStorageConcurrencyIsWhatWasInFlight(t *testing.T) {
	r := &Result{WindowNS: int64(10 * time.Second), Workload: Workload{Workers: 500}, Tiers: []TierResult{{
		Level: "storage", Read: TierTraffic{DeviceNS: int64(20 * time.Second)}, Write: TierTraffic{DeviceNS: int64(10 * time.Second)},
	}}}
	r.IO.Depth = 2
	assert.InDelta(t, 6, storageConcurrency(r), 1e-9)
	r.Tiers[0].Read.DeviceNS, r.Tiers[0].Write.DeviceNS = 0, 0
	assert.InDelta(t, 1000, storageConcurrency(r), 1e-9, "the workers are an upper bound")
}

func TestALogSaysWhyItWasNotTraced(t *testing.T) {
	log := func(r *Result) string { return strings.Join(LogLines(r), "\n") }
	assert.NotContains(t, log(fixtureResult()), "traced", "nobody asked")
	assert.NotContains(t, log(traced(t, tracing.Capture{Status: tracing.StatusTraced})), "not traced")
	assert.Contains(t, log(traced(t, tracing.Capture{
		Status: tracing.StatusCounters, Reason: "this process lacks the privilege (CAP_BPF)", Needs: []string{"sudo", "a newer kernel"},
	})), "not traced: this process lacks the privilege (CAP_BPF); needed: sudo; a newer kernel")
}

// A trace that was asked for and did not come is told by its absence in numbers, not by absence.
func TestATraceOfASimulatedDeviceIsExplained(t *testing.T) {
	tr := &trial{cfg: &Config{Trace: &TraceConfig{Level: tracing.LevelBlock}}, sim: &simulation{}}
	tr.startTracing(t.Context())
	var told tracing.Trace
	require.NoError(t, json.Unmarshal(tr.info.Trace, &told))
	assert.Equal(t, tracing.StatusNone, told.Capture.Status)
	assert.Contains(t, told.Capture.Reason, "simulated")
	assert.Nil(t, tr.tracer)
}
