package fio

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
	"kvbench/tracing"
)

// tracedBefore reads a trace of testdata/traces, in the format of a result file.
func tracedBefore(t *testing.T, name string) *tracing.Trace {
	t.Helper()
	path := filepath.Join("../testdata/traces", name+".json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var tr tracing.Trace
	require.NoError(t, json.Unmarshal(text, &tr))
	return &tr
}

var kvInput = Input{
	Title: "MaxStorageStress, trial 1", Model: "llama3.1-8b", Users: 200, BytesPerToken: 131072,
	Application: tracing.Application{ReadBytes: 9 << 30, WriteBytes: 4 << 30},
}

func TestJobsOfTraces(t *testing.T) {
	cached := kvInput
	cached.ReadBytes = 100 << 30
	huge := kvInput
	huge.HugePages = true
	for name, in := range map[string]Input{
		"deep":       kvInput,
		"hugepages":  huge,
		"pauses":     {},
		"batches":    {Title: "fio, whose queue runs dry between batches"},
		"single":     {Title: "one request at a time, and work between them"},
		"rhythm":     {Title: "four requests and a pause of 2 ms"},
		"contiguous": {Title: "vllm"},
		"cached":     cached,
		"one-gap":    {Title: "vllm"},
	} {
		t.Run(name, func(t *testing.T) {
			job, err := Job(tracedBefore(t, name), in)
			require.NoError(t, err)
			golden.Check(t, "fio/"+name+".fio", job)
			again, err := Job(tracedBefore(t, name), in)
			require.NoError(t, err)
			assert.Equal(t, job, again, "the same input gives the same text")
			assert.NotRegexp(t, "(?m)^(size|runtime|time_based|iomem)=", job)
		})
	}
}

// Storage without a block device gives a job of its mount's transfer sizes.
func TestFioJobWithoutBlockRequests(t *testing.T) {
	none := &tracing.Trace{Capture: tracing.Capture{Status: tracing.StatusNone,
		Reason: "nfs4 is a network filesystem", WindowNS: int64(20 * time.Second)}}
	job, err := Job(none, Input{ReadSize: 1 << 20, WriteSize: 512 << 10, Concurrency: 12.4,
		Application: tracing.Application{ReadBytes: 3 << 30, WriteBytes: 1 << 30}})
	require.NoError(t, err)
	golden.Check(t, "fio/nfs.fio", job)
}

// sizes is a distribution of requests that have exactly these sizes in bytes.
func sizes(counts map[int64]int64) tracing.Histogram {
	var in []tracing.Bucket
	for bytes, n := range counts {
		kib := float64(bytes) / 1024
		in = append(in, tracing.Bucket{Range: [2]float64{kib, kib + 1}, Count: n, Value: kib})
	}
	return tracing.NewHistogram("kb", 0, in)
}

func TestSplitSumsTo100(t *testing.T) {
	many := map[int64]int64{}
	for i := range int64(300) {
		many[4096*(i+1)] = 10 + i%7
	}
	rare := map[int64]int64{4096: 1e6} // 70 sizes with few requests and more than 1 % of the bytes each
	for i := range int64(70) {
		rare[65536+16384*i] = 9e6 / (65536 + 16384*i) * 100
	}
	for _, counts := range []map[int64]int64{
		rare,
		{4096: 1, 8192: 1, 16384: 1},
		{4096: 1e6, 8192: 1},
		{4096: 335, 8192: 335, 16384: 330},
		many,
		// A rare size is replaced by a common one.
		{4096: 9049, 65536: 950, 6553600: 1},
	} {
		total := 0
		shares, _ := split(sizes(counts), 4096, false)
		assert.LessOrEqual(t, len(shares), maxSplit)
		for _, s := range shares {
			assert.Positive(t, s.percent)
			total += s.percent
		}
		assert.Equal(t, 100, total)
	}
}
