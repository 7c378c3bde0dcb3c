package record

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tracing"
)

// traced is the fixture with a trace.
func traced(t *testing.T, c tracing.Capture) *result.Result {
	r := *fixtureResult()
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
	job, err := report.FioJob(again)
	require.NoError(t, err)
	assert.Contains(t, job, "\nbssplit=1m/100,256k/100\n")
	assert.Contains(t, job, "nfs4 is a network filesystem (filer:/export/kv)")
	again.IO.ChunkBytes = 512 << 10
	job, err = report.FioJob(again)
	require.NoError(t, err)
	assert.Contains(t, job, "\nbssplit=512k/100,256k/100\n",
		"no transfer is larger than the request")
}

func TestALogSaysWhyItWasNotTraced(t *testing.T) {
	log := func(r *result.Result) string { return strings.Join(report.LogLines(r), "\n") }
	assert.NotContains(t, log(fixtureResult()), "traced", "nobody asked")
	assert.NotContains(t, log(traced(t, tracing.Capture{Status: tracing.StatusTraced})),
		"not traced")
	assert.Contains(t, log(traced(t, tracing.Capture{
		Status: tracing.StatusCounters, Reason: "this process lacks the privilege (CAP_BPF)",
		Needs: []string{"sudo", "a newer kernel"},
	})), "not traced: this process lacks the privilege (CAP_BPF); needed: sudo; a newer kernel")
}
