package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tracing"
)

func TestStorageConcurrencyIsWhatWasInFlight(t *testing.T) {
	r := &result.Result{WindowNS: int64(10 * time.Second), Workload: result.Workload{Workers: 500},
		Tiers: []result.Tier{{
			Level: "storage", Read: result.TierTraffic{DeviceNS: int64(20 * time.Second)},
			Write: result.TierTraffic{DeviceNS: int64(10 * time.Second)},
		}}}
	r.IO.Depth = 2
	assert.InDelta(t, 3, storageConcurrency(r), 1e-9, "operations, each with one request at least")
	r.Tiers[0].Read.InFlightNS, r.Tiers[0].Write.InFlightNS = 35e9, 10e9
	assert.InDelta(t, 4.5, storageConcurrency(r), 1e-9, "requests")
	r.Tiers = nil
	assert.InDelta(t, 500, storageConcurrency(r), 1e-9, "the workers are an upper bound")
}

// traced is the fixture with a trace.
func traced(t *testing.T, c tracing.Capture) *result.Result {
	r := *fixture(t, "result.json")
	var err error
	r.DeviceLatencyTracing, err = json.Marshal(tracing.Trace{Capture: c})
	require.NoError(t, err)
	return &r
}

func TestARunOnNFSMakesAJobOfTheMountsTransfers(t *testing.T) {
	r := traced(t, tracing.Capture{Status: tracing.StatusNone,
		Reason: "nfs4 is a network filesystem (filer:/export/kv): its disks are not on this host"})
	r.Environment.Filesystem.ReadSizeBytes,
		r.Environment.Filesystem.WriteSizeBytes = new(int64(1<<20)), new(int64(256<<10))

	// kvreport has the JSON alone.
	text, err := json.Marshal(r)
	require.NoError(t, err)
	again, err := result.Parse(text)
	require.NoError(t, err)
	again.IO.ChunkBytes = 2 << 20
	job, err := FioJob(again)
	require.NoError(t, err)
	assert.Contains(t, job, "\nbssplit=1m/100,256k/100\n")
	assert.Contains(t, job, "nfs4 is a network filesystem (filer:/export/kv)")
	again.IO.ChunkBytes = 512 << 10
	job, err = FioJob(again)
	require.NoError(t, err)
	assert.Contains(t, job, "\nbssplit=512k/100,256k/100\n",
		"no transfer is larger than the request")
}

func TestALogSaysWhyItWasNotTraced(t *testing.T) {
	log := func(r *result.Result) string { return strings.Join(LogLines(r), "\n") }
	assert.NotContains(t, log(fixture(t, "result.json")), "traced", "not requested")
	assert.NotContains(t, log(traced(t, tracing.Capture{Status: tracing.StatusTraced})),
		"not traced")
	assert.Contains(t, log(traced(t, tracing.Capture{
		Status: tracing.StatusCounters, Reason: "this process lacks the privilege (CAP_BPF)",
		Needs: []string{"sudo", "a newer kernel"},
	})), "not traced: this process lacks the privilege (CAP_BPF); needed: sudo; a newer kernel")
}

// An object store has no block device here; the sizes of its requests are known without a trace.
func TestFioJobOfAnObjectStore(t *testing.T) {
	r := fixture(t, "result.json")
	r.Objects, r.DeviceLatencyTracing = &result.Objects{}, nil
	for i := range r.Tiers {
		if t := &r.Tiers[i]; t.Level == "storage" {
			t.Read.Requests, t.Read.Bytes = 100, 100*(3<<20)+100
			t.Write.Requests, t.Write.Bytes = 50, 50*4096
		}
	}
	job, err := FioJob(r)
	require.NoError(t, err)
	assert.Contains(t, job, "\nbssplit=3m/100,4k/100\n")
	assert.Contains(t, job, "no block device: the storage is an object store")
	assert.Contains(t, job, "rwmixread=67")
	for i := range r.Tiers {
		r.Tiers[i].Read.Requests, r.Tiers[i].Write.Requests = 0, 0
	}
	_, err = FioJob(r)
	assert.ErrorContains(t, err, "object store")
}
